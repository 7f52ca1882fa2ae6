"""What is said of a search that earlier versions had, and of the cells that a race dropped."""

from collections.abc import Mapping

import pytest

from tests.unit.run_samples import make_suite
from tests.unit.verdict_samples import SECOND, make_row, make_verdict
from traindyno.core.suite.choices import Search
from traindyno.core.verdict.search_text import describe_replaced, none_near
from traindyno.core.verdict.verdict import Verdict


@pytest.mark.parametrize("search", [Search.ELIMINATE, Search.MODEL])
def test_a_search_of_earlier_versions_is_read_with_a_sentence(search: Search) -> None:
    text = describe_replaced(make_suite(search=search))
    assert text is not None
    assert text.startswith(f"search: {search} is read as search: race: every cell runs once")


@pytest.mark.parametrize("search", [Search.RACE, Search.GRID])
def test_of_todays_searches_nothing_is_said(search: Search) -> None:
    assert describe_replaced(make_suite(search=search)) is None


def verdict_of(dropped: Mapping[str, float], failed: int = 0) -> Verdict:
    return make_verdict(rows=(make_row(), make_row(SECOND, failed=failed)), rivals=(), dropped=dropped)


@pytest.mark.parametrize(
    ("ratio", "failed", "said"),
    [
        (1 / 1.09, 0, "no other cell was within 8 % of it"),
        (1 / 1.05, 0, "it alone ran again; of the others, the nearest one was 5.0 % behind in one run"),
        (1.02, 0, "it alone ran again; of the others, the nearest one was 0.0 % behind in one run"),
        (1 / 1.09, 1, "it alone ran again, and trials of the others failed"),
    ],
)
def test_a_sole_leader_says_why_no_other_cell_was_compared(ratio: float, failed: int, said: str) -> None:
    assert none_near(verdict_of({SECOND: ratio}, failed)) == said


def test_without_a_race_nothing_is_said_of_dropped_cells() -> None:
    assert none_near(verdict_of({})) is None
