"""Many suites with known truth, decided by the lab's own functions, and how often the decision was
right or wrong.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, sqrt

from tests.simulations.noise_models import Cells, NoiseModel, Shape, independent
from tests.simulations.repetitions import TIMES
from tests.unit.run_samples import known, make_cell
from traindyno.core.suite.cells import Cell
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.in_job.run_scatter import PASSES
from traindyno.figures.judge import Recommendation, recommend
from traindyno.figures.model import TrialModel, correlated, fit_model
from traindyno.figures.selection import Relation, correct_for_selection, simultaneous
from traindyno.figures.table import CellFacts, FigureColumn, Figures, TrialRow, tabulate

SEED = 20261121
TOLERANCE = 0.02
# The simulated quantity.
VALUE = FigureColumn.SECONDS
REPETITIONS = {2: 600, 8: 300, 32: 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of suites with a hit."""

    hits: int
    count: int

    @property
    def share(self) -> float:
        return self.hits / self.count if self.count else 0.0

    def error(self, expected: float) -> float:
        """Two and a half standard errors of a share that is truly ``expected``."""
        return 2.5 * sqrt(expected * (1 - expected) / max(1, self.count))


def share_of(held: Iterable[bool]) -> Share:
    hits = list(held)
    return Share(hits=sum(hits), count=len(hits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Shares of suites in which the first cell is the best, alone or with others.

    ``wrong``: "it beats each other cell" was said where no cell is better than all others, or of a
    cell that is not the best; or a cell was called good enough that is worse than the best by the
    tolerance or more. ``superior``: the best was said to beat each other cell. ``decided``: it was
    recommended, for that or for being within the tolerance.
    """

    wrong: Share
    superior: Share
    decided: Share


def repetitions(cells: int) -> int:
    return REPETITIONS[cells] * TIMES


def simulate(model: NoiseModel, shape: Shape) -> Outcomes:
    source = random.Random(f"{SEED} {model.__name__} {shape}")
    recommendations = [
        decide(model(source, shape, cells_of(len(shape.levels))))[0]
        for _ in range(repetitions(len(shape.levels)))
    ]
    return Outcomes(
        wrong=share_of(is_wrong(recommendation, shape) for recommendation in recommendations),
        superior=share_of(
            best_of(recommendation) == 0 and is_superior(recommendation)
            for recommendation in recommendations
        ),
        decided=share_of(
            best_of(recommendation) == 0 and is_decided(recommendation)
            for recommendation in recommendations
        ),
    )


def decide(cells: Cells, looks: int = 1) -> tuple[Recommendation, TrialModel]:
    figures = figures_of(cells)
    model = correlated(fit_model(figures), VALUE)
    recommendation = recommend(
        model, [*figures.cells], VALUE, tolerance=TOLERANCE, significance=SIGNIFICANCE / looks
    )
    return known(recommendation), model


def is_superior(recommendation: Recommendation) -> bool:
    return all(rival.relation is Relation.BEATEN for rival in recommendation.rivals)


def is_decided(recommendation: Recommendation) -> bool:
    return all(
        rival.relation not in (Relation.OPEN, Relation.UNKNOWN) for rival in recommendation.rivals
    )


def is_wrong(recommendation: Recommendation, shape: Shape) -> bool:
    lead = shape.levels[best_of(recommendation)] - min(shape.levels)
    is_alone = shape.levels.count(min(shape.levels)) == 1
    if is_superior(recommendation):
        return lead > 0 or not is_alone
    return is_decided(recommendation) and lead >= log(1 + TOLERANCE) - 1e-12


def best_of(recommendation: Recommendation) -> int:
    return int(recommendation.best, 16)


def figures_of(cells: Cells) -> Figures:
    """The trials of one number are a round."""
    named = dict(zip([f"{index:08x}" for index, _ in enumerate(cells)], cells, strict=True))
    rows = (
        TrialRow(cell=cell, values={VALUE: trial.value}, hosts=trial.hosts, block=f"{number}")
        for cell, trials in named.items()
        for number, trial in enumerate(trials, start=1)
    )
    return tabulate(rows, dict.fromkeys(named, CellFacts()))


@cache
def cells_of(count: int) -> tuple[Cell, ...]:
    return tuple(make_cell(f"{index:08x}", f"cell {index}") for index in range(count))


def further_trials(cells: int, trials: int) -> Share:
    """Suites of ``trials`` that stay open are run again with the cells and the trials that the
    verdict names.
    """
    source = random.Random(f"{SEED} further {cells} {trials}")
    levels = (0.0, *[log(1.05)] * (cells - 1))
    settled: list[bool] = []
    while len(settled) < REPETITIONS[cells] // 4 * TIMES:
        recommendation, _ = decide(independent(source, Shape(levels=levels, trials=trials), ()))
        wanted = recommendation.to_decide.trials
        if wanted is None:
            continue
        assert wanted > trials
        still_open = [
            int(rival.cell_id, 16)
            for rival in recommendation.rivals
            if rival.relation is Relation.OPEN
        ]
        again = sorted({0, best_of(recommendation), *still_open})
        shape = Shape(levels=tuple(levels[index] for index in again), trials=wanted)
        second, _ = decide(independent(source, shape, ()))
        settled.append(best_of(second) == 0 and is_decided(second))
    return share_of(settled)


def wrong_with_looks(model: NoiseModel, cells: int, trials: int) -> Share:
    """A race of equal cells is judged after each further job, of two passes, and stops at the first
    claim.
    """
    source = random.Random(f"{SEED} looks {model.__name__} {cells}")
    shape = Shape(levels=(0.0,) * cells, trials=trials)
    looks = (trials - 1) // PASSES

    def claims() -> bool:
        values = model(source, shape, cells_of(cells))
        return any(
            is_superior(
                decide([trials_of_cell[: 1 + PASSES * look] for trials_of_cell in values], looks)[0]
            )
            for look in range(1, looks + 1)
        )

    return share_of(claims() for _ in range(repetitions(cells) // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the 95 % intervals hold the truth: of the recommended cell's figure, of its ratio
    to the baseline, and of its ratio to the cell in the last place, chosen after the look.
    """

    expected: Share
    against_baseline: Share
    last: Share


def measure_coverage(levels: Sequence[float], trials: int, *, is_race: bool = False) -> Coverage:
    """The last cell is the baseline.

    Suites in which it is recommended itself are left out of its comparison.

    A race shows the intervals of the look at which it stops: at the first answer, or at the last
    job.
    """
    cells = len(levels)
    looks = (trials - 1) // PASSES if is_race else 1
    name = f"with looks {cells}" if is_race else levels
    source = random.Random(f"{SEED} coverage {name} {trials}")
    expected = list[bool]()
    against = list[bool]()
    last = list[bool]()
    for _ in range(repetitions(cells) // (4 if is_race else 1)):
        values = independent(source, Shape(levels=tuple(levels), trials=trials), ())
        for seen in [1 + PASSES * look for look in range(1, looks + 1)] if is_race else [trials]:
            recommendation, model = decide(
                [trials_of_cell[:seen] for trials_of_cell in values], looks
            )
            if is_decided(recommendation):
                break
        correction = correct_for_selection(recommendation.comparisons, SIGNIFICANCE / looks)
        estimate = known(model.estimate(recommendation.best, VALUE, correction))
        assert estimate.interval is not None
        truth = exp(levels[best_of(recommendation)])
        expected.append(estimate.interval.low <= truth <= estimate.interval.high)
        for place, rival in enumerate(recommendation.rivals, start=2):
            interval, _ = simultaneous(
                recommendation.comparisons, rival.comparison, SIGNIFICANCE / looks
            )
            assert interval is not None
            index = int(rival.cell_id, 16)
            holds = interval.low <= truth / exp(levels[index]) <= interval.high
            if place == cells:
                last.append(holds)
            if index == cells - 1:
                against.append(holds)
    return Coverage(
        expected=share_of(expected), against_baseline=share_of(against), last=share_of(last)
    )
