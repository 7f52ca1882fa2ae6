"""What a goal minimises."""

from tests.unit.verdict_samples import make_estimate, make_row, make_verdict
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_figures import find_trade_offs
from traindyno.core.verdict.evidence import choose_metric
from traindyno.figures.table import FigureColumn

CHEAPEST = Goal(kind=GoalKind.CHEAPEST)
FASTEST = Goal(kind=GoalKind.FASTEST)


def test_money_decides_unless_no_price_is_known_for_the_one_type() -> None:
    one = ["ml.p4d.24xlarge"]
    assert choose_metric(FASTEST, one, is_priced=False) is FigureColumn.SECONDS
    assert choose_metric(CHEAPEST, one, is_priced=True) is FigureColumn.USD
    assert choose_metric(CHEAPEST, one, is_priced=False) is FigureColumn.INSTANCE_HOURS
    assert choose_metric(CHEAPEST, [*one, "ml.g5.xlarge"], is_priced=False) is FigureColumn.USD


def test_a_target_has_metrics_of_its_own() -> None:
    times = FigureColumn.SECONDS_TO_TARGET
    costs = FigureColumn.USD_TO_TARGET
    fastest = Goal(kind=GoalKind.FASTEST_TO, accuracy=0.9)
    cheapest = Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.9)
    assert choose_metric(fastest, [], is_priced=False) is times
    assert choose_metric(cheapest, [], is_priced=False) is costs
    assert [column for column in FigureColumn if column.is_time] == [FigureColumn.SECONDS, times]
    assert [column for column in FigureColumn if column.is_money] == [FigureColumn.USD, costs]


def test_the_front_has_no_cell_beaten_by_another_in_time_and_money() -> None:
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
