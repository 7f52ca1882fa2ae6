"""Many suites with known truth, decided by the lab's own functions, and how often the decision was right or wrong."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log, sqrt

from tests.simulations.noise_models import Cells, NoiseModel, Shape, independent
from tests.simulations.repetitions import TIMES
from tests.unit.run_samples import completed_result, known, make_cell
from traindyno.core.measurement.measured_run import RunEnvironment
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.search.race import PASSES
from traindyno.core.statistics.distributions import SIGNIFICANCE
from traindyno.core.statistics.selection import Relation, correct_for_selection
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_trials import CellTrials, Noise, estimate_cell, measure_noise
from traindyno.core.verdict.recommendation import Recommendation, recommend

SEED = 20261121
TOLERANCE = 0.02
REPETITIONS = {2: 600, 8: 300, 32: 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """``hits`` of ``count`` suites."""

    hits: int
    count: int

    @property
    def share(self) -> float:
        return self.hits / self.count if self.count else 0.0

    def error(self, expected: float) -> float:
        """Two and a half standard errors of a share that is truly ``expected``."""
        return 2.5 * sqrt(expected * (1 - expected) / max(1, self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Shares of suites in which the first cell is the best, alone or with others.

    ``wrong``: "it beats each other cell" was said where no cell is better than all others, or of a cell that is not the
    best; or a cell was called good enough that is worse than the best by the tolerance or more. ``superior``: the best
    was said to beat each other cell. ``decided``: it was recommended, for that or for being within the tolerance.
    """

    wrong: Share
    superior: Share
    decided: Share


def repetitions(cells: int) -> int:
    return REPETITIONS[cells] * TIMES


def simulate(model: NoiseModel, shape: Shape) -> Outcomes:
    source = random.Random(f"{SEED} {model.__name__} {shape}")
    found = [
        decide(model(source, shape, cells_of(len(shape.levels))))[0] for _ in range(repetitions(len(shape.levels)))
    ]
    return Outcomes(
        wrong=_count(found, lambda each: is_wrong(each, shape)),
        superior=_count(found, lambda each: best_of(each) == 0 and is_superior(each)),
        decided=_count(found, lambda each: best_of(each) == 0 and is_decided(each)),
    )


def decide(cells: Cells, looks: int = 1) -> tuple[Recommendation, Noise]:
    trials = as_cell_trials(cells)
    noise = measure_noise(trials, value_of)
    found = known(recommend(trials, value_of, noise, tolerance=TOLERANCE, significance=SIGNIFICANCE / looks))
    return found, noise


def is_superior(found: Recommendation) -> bool:
    return all(rival.relation is Relation.BEATEN for rival in found.rivals)


def is_decided(found: Recommendation) -> bool:
    return all(rival.relation not in (Relation.OPEN, Relation.UNKNOWN) for rival in found.rivals)


def is_wrong(found: Recommendation, shape: Shape) -> bool:
    lead = shape.levels[best_of(found)] - min(shape.levels)
    is_alone = shape.levels.count(min(shape.levels)) == 1
    if is_superior(found):
        return lead > 0 or not is_alone
    return is_decided(found) and lead >= log(1 + TOLERANCE) - 1e-12


def best_of(found: Recommendation) -> int:
    return int(found.best.cell.cell_id, 16)


def value_of(result: RunResult) -> float | None:
    """The simulated quantity travels as the billed time."""
    return result.billable_seconds


def as_cell_trials(cells: Cells) -> list[CellTrials]:
    return [
        CellTrials(
            cell=cell,
            measured=tuple(
                replace(_template(number), billable_seconds=trial.value, environment=_environment(trial.hosts))
                for number, trial in enumerate(trials, start=1)
            ),
            others=(),
        )
        for cell, trials in zip(cells_of(len(cells)), cells, strict=True)
    ]


@cache
def cells_of(count: int) -> tuple[Cell, ...]:
    return tuple(make_cell(f"{index:08x}", f"cell {index}") for index in range(count))


def further_trials(cells: int, trials: int) -> Share:
    """Suites of ``trials`` that stay open are run again with the cells and the trials that the verdict names."""
    source = random.Random(f"{SEED} further {cells} {trials}")
    levels = (0.0, *[log(1.05)] * (cells - 1))
    settled: list[bool] = []
    while len(settled) < REPETITIONS[cells] // 4 * TIMES:
        found, _ = decide(independent(source, Shape(levels=levels, trials=trials), ()))
        wanted = found.to_decide.trials
        if wanted is None:
            continue
        assert wanted > trials
        still_open = [int(each.cell_id, 16) for each in found.rivals if each.relation is Relation.OPEN]
        again = sorted({0, best_of(found), *still_open})
        shape = Shape(levels=tuple(levels[index] for index in again), trials=wanted)
        second, _ = decide(independent(source, shape, ()))
        settled.append(best_of(second) == 0 and is_decided(second))
    return Share(hits=sum(settled), count=len(settled))


def wrong_with_looks(model: NoiseModel, cells: int, trials: int) -> Share:
    """A race of equal cells is judged after each further job, of two passes, and stops at the first claim."""
    source = random.Random(f"{SEED} looks {model.__name__} {cells}")
    shape = Shape(levels=(0.0,) * cells, trials=trials)
    looks = (trials - 1) // PASSES

    def claims() -> bool:
        values = model(source, shape, cells_of(cells))
        return any(
            is_superior(decide([each[: 1 + PASSES * look] for each in values], looks)[0])
            for look in range(1, looks + 1)
        )

    suites = repetitions(cells) // 2
    return Share(hits=sum(claims() for _ in range(suites)), count=suites)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the 95 % intervals hold the truth: the recommended cell's figure, and its ratio to the baseline."""

    expected: Share
    against_baseline: Share


def measure_coverage(levels: Sequence[float], trials: int) -> Coverage:
    """The last cell is the baseline. Suites in which it is recommended itself are left out of its comparison."""
    source = random.Random(f"{SEED} coverage {levels} {trials}")
    expected: list[bool] = []
    against: list[bool] = []
    baseline = len(levels) - 1
    for _ in range(repetitions(len(levels))):
        found, noise = decide(independent(source, Shape(levels=tuple(levels), trials=trials), ()))
        estimate = known(estimate_cell(found.best, value_of, noise, correct_for_selection(found.comparisons)))
        assert estimate.interval is not None
        truth = exp(levels[best_of(found)])
        expected.append(estimate.interval.low <= truth <= estimate.interval.high)
        for rival in found.rivals:
            if int(rival.cell_id, 16) == baseline:
                interval, _ = found.simultaneous(rival.comparison, SIGNIFICANCE)
                assert interval is not None
                against.append(interval.low <= truth / exp(levels[baseline]) <= interval.high)
    return Coverage(
        expected=Share(hits=sum(expected), count=len(expected)),
        against_baseline=Share(hits=sum(against), count=len(against)),
    )


def coverage_with_looks(cells: int, trials: int) -> tuple[Coverage, Share]:
    """A race shows the intervals of the look at which it stops: at the first answer, or at the last job.

    The share is of the cell in the last place, chosen after the look. As above, the last cell is the baseline.
    """
    source = random.Random(f"{SEED} coverage with looks {cells} {trials}")
    shape = Shape(levels=(0.0,) * cells, trials=trials)
    looks = (trials - 1) // PASSES
    expected: list[bool] = []
    against: list[bool] = []
    last: list[bool] = []
    for _ in range(repetitions(cells) // 4):
        values = independent(source, shape, ())
        for look in range(1, looks + 1):
            found, noise = decide([each[: 1 + PASSES * look] for each in values], looks)
            if is_decided(found):
                break
        correction = correct_for_selection(found.comparisons, SIGNIFICANCE / looks)
        estimate = known(estimate_cell(found.best, value_of, noise, correction))
        assert estimate.interval is not None
        expected.append(estimate.interval.low <= 1 <= estimate.interval.high)
        for place, rival in enumerate(found.rivals, start=2):
            ratio, _ = found.simultaneous(rival.comparison, SIGNIFICANCE / looks)
            assert ratio is not None
            holds = ratio.low <= 1 <= ratio.high
            if place == cells:
                last.append(holds)
            if int(rival.cell_id, 16) == cells - 1:
                against.append(holds)
    coverage = Coverage(
        expected=Share(hits=sum(expected), count=len(expected)),
        against_baseline=Share(hits=sum(against), count=len(against)),
    )
    return coverage, Share(hits=sum(last), count=len(last))


def _count(found: Sequence[Recommendation], holds: Callable[[Recommendation], bool]) -> Share:
    return Share(hits=sum(map(holds, found)), count=len(found))


@cache
def _template(trial: int) -> RunResult:
    return completed_result(make_cell(), trial)


@cache
def _environment(hosts: frozenset[str] | None) -> RunEnvironment:
    return RunEnvironment(world_size=1, hosts=("algo-1",), facts={}, host_ids=tuple(sorted(hosts or ())))
