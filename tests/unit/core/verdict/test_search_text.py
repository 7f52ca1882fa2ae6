"""What is said of the cells that a race dropped."""

from collections.abc import Mapping

import pytest

from tests.unit.verdict_samples import SECOND, make_estimate, make_row, make_verdict
from traindyno.core.verdict.open_text import none_near
from traindyno.core.verdict.verdict import Verdict


def verdict_of(dropped: Mapping[str, float], failed: int = 0) -> Verdict:
    return make_verdict(rows=(make_row(), make_row(SECOND, failed=failed)), rivals=(), dropped=dropped)


@pytest.mark.parametrize(
    ("ratio", "failed", "said"),
    [
        (1 / 1.09, 0, "no other cell was within 8 % of it"),
        (1 / 1.05, 0, "only it was measured again; the closest alternative was 5.0 % behind in its single run"),
        (1.02, 0, "only it was measured again; the closest alternative was 0.0 % behind in its single run"),
        (1 / 1.09, 1, "only it was measured again, and trials of the others failed"),
    ],
)
def test_a_sole_leader_says_why_no_other_cell_was_compared(ratio: float, failed: int, said: str) -> None:
    assert none_near(verdict_of({SECOND: ratio}, failed)) == said


def test_without_a_race_nothing_is_said_of_dropped_cells() -> None:
    assert none_near(verdict_of({})) is None


@pytest.mark.parametrize(("seconds", "is_near"), [(1017.0, True), (990.0, True), (1200.0, False)])
def test_a_cell_whose_other_runs_are_near_is_not_said_to_be_far(seconds: float, is_near: bool) -> None:
    """One of its runs was ended early, as on a busy host: the leader's lead is not known to be 8 %."""
    near = make_row(SECOND, outcomes={"completed": 4, "outpaced": 1}, seconds=make_estimate(seconds))
    said = none_near(make_verdict(rows=(make_row(), near), rivals=(), dropped={}))
    assert (said == "no other cell was within 8 % of it") is not is_near
    assert ("behind was ended as too slow; run the suite again" in str(said)) is is_near
