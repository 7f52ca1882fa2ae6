"""Checks of a suite's sections, at the values where they begin to refuse."""

from typing import Any

import pytest

from tests.unit.suites import small_document
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite


def problems(**changes: Any) -> list[str]:
    try:
        parse_suite(small_document(**changes))
    except SuiteInvalid as error:
        return [f"{problem.path}: {problem.message}" for problem in error.problems]
    return []


@pytest.mark.parametrize(("name", "is_valid"), [("a" * 40, True), ("a" * 41, False), ("a--b", False), ("-a", False)])
def test_a_name_has_forty_characters_at_most(name: str, is_valid: bool) -> None:
    assert (problems(name=name) == []) is is_valid
