"""The situations of single runs, by the name under which the tables list them."""

from dataclasses import dataclass

from tests.simulations.processes import (
    Process,
    checkpoints_and_evaluation,
    early_recompilations,
    level,
    noise,
    periodic,
    random_stalls,
    second_compilation,
    warming_up,
)

STEPS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A process, with the least share of its runs whose rate must be given and right: "not steady"
    is no way out of it.
    """

    name: str
    process: Process
    least_within: float


RATE_SCENARIOS = (
    Scenario(name="independent noise, CV 2 %", process=noise(), least_within=0.95),
    Scenario(name="noise with autocorrelation 0.8", process=noise(0.8), least_within=0.85),
    Scenario(
        name="second compilation, logged as a phase",
        process=second_compilation(is_logged=True),
        least_within=0.95,
    ),
    Scenario(
        name="second compilation in the first half, not logged",
        process=second_compilation(is_logged=False),
        least_within=0.0,
    ),
    Scenario(
        name="two recompilations in the first 4 % of steps",
        process=early_recompilations,
        least_within=0.90,
    ),
    Scenario(
        name="checkpoint of 5 s each 50 steps, as a phase",
        process=periodic(50, 5.0, "save"),
        least_within=0.95,
    ),
    Scenario(
        name="checkpoints and evaluation, as phases",
        process=checkpoints_and_evaluation,
        least_within=0.95,
    ),
    Scenario(
        name="stall of 5 s each 50 steps, not logged", process=periodic(50, 5.0), least_within=0.95
    ),
    Scenario(
        name="loader slow by 60 % for the first 40 %",
        process=level(lambda step: 1.6 if step < 96 else 1.0, 1.0),
        least_within=0.95,
    ),
    Scenario(
        name="loader slow by 60 % for 40 % in the middle",
        process=level(lambda step: 1.6 if 70 <= step < 166 else 1.0, 1.0),
        least_within=0.0,
    ),
    Scenario(
        name="buffers that drain after 40 steps",
        process=level(lambda step: 0.8 if step < 40 else 1.0, 1.0),
        least_within=0.95,
    ),
    Scenario(
        name="slows down by 4 % while it warms up", process=warming_up(0.04, 40), least_within=0.0
    ),
    Scenario(
        name="slows down by 15 % while it warms up", process=warming_up(0.15, 40), least_within=0.0
    ),
    Scenario(
        name="drifts by 4 % over the run",
        process=level(lambda step: 1 + 0.04 * step / STEPS, 1.04),
        least_within=0.0,
    ),
    Scenario(
        name="drifts by 15 % over the run",
        process=level(lambda step: 1 + 0.15 * step / STEPS, 1.15),
        least_within=0.0,
    ),
    Scenario(
        name="the log's clock jumps by an hour",
        process=level(lambda step: 3600.0 if step == 100 else 1.0, 1.0),
        least_within=0.0,
    ),
)
STOP_SCENARIOS = (
    Scenario(name="independent noise, CV 2 %", process=noise(), least_within=0.9),
    Scenario(name="autocorrelation 0.8, CV 2 %", process=noise(0.8), least_within=0.9),
    Scenario(name="autocorrelation 0.95, CV 1 %", process=noise(0.95, 0.01), least_within=0.5),
    Scenario(name="stall of 5 s each 50 steps", process=periodic(50, 5.0), least_within=0.9),
    Scenario(name="stall of 5 s each 100 steps", process=periodic(100, 5.0), least_within=0.9),
    Scenario(
        name="stalls of 0.5 s at random, 2 % of steps",
        process=random_stalls(0.02, 0.5),
        least_within=0.5,
    ),
    Scenario(
        name="stalls of 5 s at random, 2 % of steps",
        process=random_stalls(0.02, 5.0),
        least_within=0.0,
    ),
    Scenario(
        name="slows down by 5 % while it warms up", process=warming_up(0.05, 100), least_within=0.0
    ),
    Scenario(
        name="drifts by 15 % over 600 steps, then holds",
        process=level(lambda step: 1 + 0.15 * min(step / 600, 1.0), 1.15),
        least_within=0.0,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Trials of one cell.

    ``host_deviation`` is the standard deviation of hosts' speeds, as a share.
    """

    name: str
    process: Process
    trials: int
    host_deviation: float


CELLS = (
    Cell(
        name="independent noise, 3 trials, hosts 2 %",
        process=noise(),
        trials=3,
        host_deviation=0.02,
    ),
    Cell(
        name="autocorrelation 0.8, 5 trials, hosts 2 %",
        process=noise(0.8),
        trials=5,
        host_deviation=0.02,
    ),
    Cell(
        name="checkpoint of 5 s each 50 steps, 3 trials, hosts 2 %",
        process=periodic(50, 5.0, "save"),
        trials=3,
        host_deviation=0.02,
    ),
    Cell(
        name="stalls of 0.5 s at random, 5 trials, hosts 2 %",
        process=random_stalls(0.03, 0.5),
        trials=5,
        host_deviation=0.02,
    ),
    Cell(
        name="stalls of 5 s at random, 0.5 % of steps, 5 trials, hosts 0.5 %",
        process=random_stalls(0.005, 5.0),
        trials=5,
        host_deviation=0.005,
    ),
    Cell(
        name="independent noise, 2 trials, hosts 0.5 %",
        process=noise(),
        trials=2,
        host_deviation=0.005,
    ),
)
