"""Plays one suite: the lab's own rounds and verdict on drawn trials, of which the truth is
known.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log

from tests.simulations.logged_runs import FIRST_STEP_SECONDS, result_of, session_of
from tests.simulations.processes import Process, Simulated
from tests.simulations.suites.levels import Drawn, LevelNoise, hosts
from tests.simulations.suites.logs import (
    FIXED_SECONDS,
    RESTART_SECONDS,
    STEPS,
    lost_result,
    on_speed,
    pooled_result,
    with_lost_attempts,
)
from tests.simulations.suites.simulated_suite import (
    CHECKPOINT_STEPS,
    FULL_STEPS,
    cells_of,
    make_suite,
)
from tests.unit.run_samples import known
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.core.verdict.verdict import Verdict

SEED = "suites 20261123"
EQUAL = (0.0, 0.0, 0.0, 0.0)
LEVELS = (0.0, log(1.03), log(1.05), log(1.08))


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The cells of a suite; ``levels`` are the logarithms of the seconds of their steps, without
    noise.

    ``processes`` has the step times of some cells; the others draw from the pool of quiet logs,
    where only the level matters.
    """

    levels: tuple[float, ...]
    noise: LevelNoise = field(default_factory=lambda: hosts(0.005))
    processes: Mapping[int, Process] = field(default_factory=dict)
    trials: int = 5
    instance_count: int = 1

    def suite(self) -> Suite:
        return make_suite(
            trials=self.trials,
            matrix={"loader_workers": tuple(range(len(self.levels)))},
            training={"instance_count": self.instance_count},
        )

    def truth(self, cell: int, factor: Callable[[int], float] | None = None) -> float:
        """Expected seconds of a run of the whole workload. ``factor``: other than on any hosts."""
        process = self.processes.get(cell)
        step = process(random.Random(0), STEPS).long_run_seconds if process else 1.0
        work = FULL_STEPS * step * exp(self.levels[cell] + (factor or self.noise.expected)(cell))
        count, again = self.expected_faults(work)
        return FIXED_SECONDS + work + count * (RESTART_SECONDS + again)

    def expected_faults(self, work: float) -> tuple[float, float]:
        """Their number in so many seconds of work, and what is done again after one: half of a
        checkpoint's steps.
        """
        again = FIRST_STEP_SECONDS + CHECKPOINT_STEPS / 2 * work / FULL_STEPS
        return self.noise.faults * work / (1 - self.noise.faults * again), again


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A played suite with the expected value of each cell; ``later`` is one later run of the
    recommended cell.

    ``values`` has the logarithms of each cell's trials as they were drawn; the power of a t test
    follows from them.
    """

    verdict: Verdict
    best: int | None
    truth: tuple[float, ...]
    later: float | None
    values: tuple[tuple[float, ...], ...]
    #: The truth of the recommended cell on the hosts of its trials.
    on_its_hosts: float | None = None
    #: Of a row that judges something else than the cell: whether the claim was wrong.
    is_wrong: bool | None = None

    @property
    def regret(self) -> float:
        return float("inf") if self.best is None else self.truth[self.best] / min(self.truth) - 1


def play(situation: Situation, name: str, number: int) -> Played:
    """The same name and number give the same suite."""
    source = random.Random(f"{SEED} {name} {number}")
    suite = situation.suite()
    started = situation.noise.begin(source, len(situation.levels))

    def draw(run: Run, cell: int) -> tuple[RunResult, float | None]:
        return _trial(situation, suite, run, started.draw(cell, run), source)

    verdict, best, values = play_suite(suite, f"{name} {number}", draw)
    return Played(
        verdict=verdict,
        best=best,
        truth=tuple(map(situation.truth, range(len(values)))),
        on_its_hosts=None if best is None else situation.truth(best, started.on_its_hosts),
        later=None if best is None else _later(situation, source, best),
        values=values,
    )


def play_baseline(situation: Situation, name: str, number: int) -> Played:
    """With equal cells, a difference between the recommended one and the baseline is a wrong
    claim.
    """
    played = play(situation, name, number)
    against_baseline = played.verdict.against_baseline
    return replace(played, is_wrong=against_baseline is not None and against_baseline.is_detected)


def play_suite(
    suite: Suite, execution_id: str, draw: Callable[[Run, int], tuple[RunResult, float | None]]
) -> tuple[Verdict, int | None, tuple[tuple[float, ...], ...]]:
    """The verdict, the number of the recommended cell, and the values of each cell.

    ``draw``: of a run of the cell of this number, its result and the logarithm of what it took;
    None if it is lost.
    """
    cells = cells_of(suite)
    results = list[RunResult]()
    number = 1
    seen: list[list[float]] = [[] for _ in cells]
    while runs := plan_round(
        suite, cells, execution_id=execution_id, round_number=number, results=results
    ):
        for run in runs:
            cell = known(index_of(cells, run.cell.cell_id))
            result, value = draw(run, cell)
            results.append(result)
            seen[cell] += [] if value is None else [value]
        number += 1
    verdict = judge(suite, cells, results)
    return verdict, index_of(cells, verdict.recommended), tuple(map(tuple, seen))


def index_of(cells: Sequence[Cell], cell_id: str | None) -> int | None:
    return next((index for index, cell in enumerate(cells) if cell.cell_id == cell_id), None)


def _trial(
    situation: Situation, suite: Suite, run: Run, drawn: Drawn, source: random.Random
) -> tuple[RunResult, float | None]:
    """A trial's result, and the logarithm of its mean step; None if it is lost."""
    cell = suite.matrix["loader_workers"].index(run.cell.settings.loader_workers)
    factor = exp(situation.levels[cell] + drawn.log_factor)
    if drawn.is_lost:
        return lost_result(run, suite, factor), None
    process = situation.processes.get(cell)
    if process is None:
        result = pooled_result(source, run, suite, factor, drawn.host_ids)
        return with_lost_attempts(result, drawn.lost_attempts, factor), log(factor)
    simulated = on_speed(process(source, STEPS), factor)
    session = session_of(simulated, host_id=drawn.host_ids[0] if drawn.host_ids else None)
    return result_of(run, suite, [session]), log(_seconds(simulated) / STEPS)


def _seconds(simulated: Simulated) -> float:
    return sum(simulated.step_seconds) + sum(event.seconds for event in simulated.events)


def _later(situation: Situation, source: random.Random, cell: int) -> float:
    noise = situation.noise
    process = situation.processes.get(cell)
    step = process(source, STEPS).long_run_seconds if process else 1.0
    if noise.later is not None:
        factor = noise.later(source)
    else:
        run = Run(
            run_id="later", execution_id="later", trial=0, cell=cells_of(situation.suite())[cell]
        )
        factor = noise.begin(source, len(situation.levels)).draw(cell, run).log_factor
    work = FULL_STEPS * step * exp(situation.levels[cell] + factor)
    count, again = situation.expected_faults(work)
    drawn = source.gauss(count, count**0.5)
    return FIXED_SECONDS + work + drawn * (RESTART_SECONDS + again)
