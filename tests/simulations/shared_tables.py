"""The table on runs that share jobs."""

from collections.abc import Iterator, Sequence
from itertools import product

from tests.simulations.repetitions import percent
from tests.simulations.shared_rows import CELLS, SHARED_ROWS, TRIALS, SharedRow, equal, led
from tests.simulations.shared_suites import measure_shared
from traindyno.figures.estimates import mean_of

SUITES = 40


def shared(suites: int = SUITES) -> Iterator[list[str]]:
    """The rows of a table, from so many suites of equal cells and as many with a lead, of each
    shape.
    """
    listed = ", ".join(map(str, TRIALS))
    head = [f"no recommendation with {listed} trials: {cells} cells" for cells in CELLS]
    yield [
        f"{suites} suites of each shape",
        "wrong",
        "ratios hold",
        "figure holds",
        "within 2 %",
        *head,
    ]
    for row in SHARED_ROWS:
        yield [row.name, *_cells_of(row, suites)]


def _cells_of(row: SharedRow, suites: int) -> Iterator[str]:
    shapes = list(product(CELLS, TRIALS))
    alike = [
        measure_shared(equal(row, *shape), f"{row.name} equal {shape}", suites) for shape in shapes
    ]
    ahead = {
        shape: measure_shared(led(row, *shape), f"{row.name} led {shape}", suites)
        for shape in shapes
    }
    both = [*alike, *ahead.values()]
    yield _mean([measured.figures.wrong for measured in both])
    yield _mean([measured.ratios for measured in ahead.values()])
    yield _mean([measured.figures.covered for measured in both])
    yield _mean([measured.figures.within for measured in ahead.values()])
    for cells in CELLS:
        yield (
            " / ".join(f"{ahead[cells, trials].figures.undecided * 100:.0f}" for trials in TRIALS)
            + " %"
        )


def _mean(shares: Sequence[float | None]) -> str:
    return percent(mean_of(shares))
