"""What a goal minimises."""

from tests.unit.verdict_samples import make_estimate, make_row, make_verdict
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_figures import find_trade_offs
from traindyno.core.verdict.goal_metric import Metric, choose_metric
from traindyno.figures.table import FigureColumn

CHEAPEST, FASTEST = Goal(kind=GoalKind.CHEAPEST), Goal(kind=GoalKind.FASTEST)


def test_money_decides_unless_no_price_is_known_for_the_one_type() -> None:
    priced, unpriced = ("ml.p4d.24xlarge", True), ("ml.p4d.24xlarge", False)
    assert choose_metric(FASTEST, [unpriced]) is Metric.SECONDS
    assert choose_metric(CHEAPEST, [priced, unpriced]) is Metric.USD
    assert choose_metric(CHEAPEST, [unpriced]) is Metric.INSTANCE_HOURS
    assert choose_metric(CHEAPEST, [unpriced, ("ml.g5.xlarge", False)]) is Metric.USD


def test_a_target_has_metrics_of_its_own() -> None:
    assert (
        choose_metric(Goal(kind=GoalKind.FASTEST_TO, accuracy=0.9), []) is Metric.SECONDS_TO_TARGET
    )
    assert choose_metric(Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.9), []) is Metric.USD_TO_TARGET
    assert [metric.column for metric in (Metric.SECONDS_TO_TARGET, Metric.USD)] == [
        FigureColumn.SECONDS_TO_TARGET,
        FigureColumn.USD,
    ]
    assert [metric.is_time for metric in Metric] == [True, False, False, True, False]
    assert [metric.is_money for metric in Metric] == [False, True, False, False, True]


def test_the_front_has_no_cell_that_another_one_beats_in_time_and_money() -> None:
    def row(cell_id: str, seconds: float, usd: float | None) -> object:
        return make_row(
            cell_id, seconds=make_estimate(seconds), usd=None if usd is None else make_estimate(usd)
        )

    rows = (
        row("a", 100.0, 9.0),
        row("b", 200.0, 5.0),
        row("c", 300.0, 5.0),
        row("d", 50.0, 20.0),
        row("e", 400.0, 4.0),
        row("f", 10.0, None),
    )
    verdict = make_verdict(rows=rows, recommended=None, rivals=(), refused={"a": "its price"})
    assert [row.cell_id for row, _, _ in find_trade_offs(verdict)] == ["d", "b", "e"]
