"""What is said of a search by a model, and of the cells that it dropped."""

from typing import Any

import pytest

from tests.unit.verdict_samples import SECOND, THIRD, make_row, make_verdict
from traindyno.core.statistics.estimates import Interval
from traindyno.core.verdict.dropped import DroppedCell
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.search_text import describe_dropped, describe_search, describe_unfinished_search
from traindyno.core.verdict.verdict import Verdict


def dropped(cell_id: str = THIRD, **changes: Any) -> DroppedCell:
    given: dict[str, Any] = {
        "cell_id": cell_id,
        "trials": 0,
        "ratio": 1.2,
        "interval": Interval(low=0.95, high=1.5, confidence=0.95),
        "chance": 0.005,
        "failure": 0.0,
        **changes,
    }
    return DroppedCell(**given)


def verdict_of(*cells: DroppedCell, **changes: Any) -> Verdict:
    rows = (make_row(), make_row(SECOND), make_row(THIRD, outcomes={}))
    return make_verdict(rows=rows, dropped=cells, **changes)


def test_a_finished_search_says_how_unlikely_the_dropped_cells_are() -> None:
    measured, unlikely = describe_search(verdict_of(dropped(chance=0.01), dropped(SECOND)))
    assert "measured 2 of 3 cells" in measured
    assert "dropped 2 cells" in unlikely
    assert "more than 2.0 % cheaper" in unlikely
    assert "is at most 1.0 %" in unlikely
    faster = list(describe_search(verdict_of(dropped(), metric=Metric.SECONDS)))
    assert "more than 2.0 % faster" in faster[1]
    assert list(describe_unfinished_search(verdict_of(dropped(chance=0.01)))) == []
    assert list(describe_search(verdict_of())) == []


def test_an_unfinished_search_names_the_most_promising_cell() -> None:
    one = verdict_of(dropped(chance=0.02))
    assert len(list(describe_search(one))) == 1
    (text,) = describe_unfinished_search(one)
    assert ": zero1 may be better" in text
    assert "(probability 2.0 % by the model)" in text
    (text,) = describe_unfinished_search(verdict_of(dropped(chance=0.02), dropped(SECOND, chance=0.3), dropped("x")))
    assert ": fsdp and 1 more may be better" in text
    assert "(probability 30.0 %" in text


@pytest.mark.parametrize(("failure", "fails"), [(0.01, ""), (0.0, ""), (0.25, ", fails with probability 25 %")])
def test_dropped_cells_are_listed_with_the_forecast(failure: float, fails: str) -> None:
    unmeasured, measured = dropped(failure=failure), dropped(SECOND, trials=1, ratio=0.9)
    assert list(describe_dropped(verdict_of(unmeasured, measured))) == [
        f"Dropped without a measurement: zero1 (+20 %, −5 % to +50 %{fails}).",
        "Dropped after one trial: fsdp (−10 %, −5 % to +50 %).",
    ]
    assert list(describe_dropped(verdict_of())) == []
