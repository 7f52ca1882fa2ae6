"""Long runs beside trials, of a table of figures."""

import pytest

from tests.unit.run_samples import known
from traindyno.figures.model import model_each_alone
from traindyno.figures.table import CellFacts, FigureColumn, LongRun, TrialRow, tabulate

SECONDS = FigureColumn.SECONDS
SCATTER = (0.99, 1.01)


def test_the_ratio_of_long_runs_is_known_as_two_single_runs_are() -> None:
    """However many trials each of the cells has."""
    counts = {"a": 4, "b": 2}
    rows = [
        TrialRow(cell=cell, values={SECONDS: 100 * SCATTER[number % 2]}, block=f"{cell} {number}")
        for cell, count in counts.items()
        for number in range(count)
    ]
    facts = {
        cell: CellFacts(long_run=LongRun(values={SECONDS: seconds}))
        for cell, seconds in (("a", 100.0), ("b", 150.0))
    }
    compared = known(model_each_alone(tabulate(rows, facts)).compare("a", "b", SECONDS))
    assert compared.ratio == pytest.approx(100 / 150)
    # 2 x 0.01² ÷ 3 of four trials in two pairs, 2 x 0.01² of two: the means' variances, times
    # the harmonic mean of the counts
    of_means = 2 * 0.01**2 * (2 / 3 / 4 + 1 / 2)
    assert known(compared.standard_error) ** 2 == pytest.approx(of_means * 8 / 3, rel=0.01)
