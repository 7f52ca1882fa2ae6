"""The charts of the cells."""

import pytest

from traindyno.figures.table import FigureColumn
from traindyno.report.charts.cell_charts import metric_text


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (FigureColumn.SECONDS, "16 min 40 s"),
        (FigureColumn.SECONDS_TO_TARGET, "16 min 40 s"),
        (FigureColumn.USD, "$1,000.00"),
        (FigureColumn.USD_TO_TARGET, "$1,000.00"),
        (FigureColumn.INSTANCE_HOURS, "1,000 instance hours"),
    ],
)
def test_a_metric_has_its_unit(metric: FigureColumn, text: str) -> None:
    assert metric_text(metric, 1000.0) == text
