"""What is said of a search that earlier versions had."""

import pytest

from tests.unit.run_samples import make_suite
from traindyno.core.suite.choices import Search
from traindyno.core.verdict.search_text import describe_replaced


@pytest.mark.parametrize("search", [Search.ELIMINATE, Search.MODEL])
def test_a_search_of_earlier_versions_is_read_with_a_sentence(search: Search) -> None:
    text = describe_replaced(make_suite(search=search))
    assert text is not None
    assert text.startswith(f"search: {search} is read as search: race: every cell runs once")


@pytest.mark.parametrize("search", [Search.RACE, Search.GRID])
def test_of_todays_searches_nothing_is_said(search: Search) -> None:
    assert describe_replaced(make_suite(search=search)) is None
