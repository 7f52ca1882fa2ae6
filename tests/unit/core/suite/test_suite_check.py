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


OTHERS = ["ml.g5.2xlarge", "ml.g5.4xlarge", "ml.g5.8xlarge", "ml.g5.16xlarge", "ml.g6.xlarge"]


@pytest.mark.parametrize(("count", "is_valid"), [(0, False), (1, True), (4, True), (5, False)])
def test_a_type_has_one_to_four_fallbacks(count: int, is_valid: bool) -> None:
    expected = [f"instance_preferences.ml.g5.xlarge: got {count} further types, expected 1 to 4"]
    assert problems(instance_preferences={"ml.g5.xlarge": OTHERS[:count]}) == ([] if is_valid else expected)


def test_fallbacks_are_other_types_each_once() -> None:
    (found,) = problems(instance_preferences={"ml.g5.xlarge": ["ml.g5.2xlarge", "ml.g5.2xlarge"]})
    assert found.endswith("got ml.g5.xlarge, ml.g5.2xlarge, ml.g5.2xlarge, expected each type once")


def test_fallbacks_have_the_same_devices_and_are_sagemakers() -> None:
    (found,) = problems(instance_preferences={"ml.g5.xlarge": ["ml.g5.2xlarge", "ml.g5.12xlarge"]})
    assert found.startswith("instance_preferences.ml.g5.xlarge[1]: ml.g5.12xlarge has 4 devices of kind gpu")
    assert "Expected a type with 1 devices of kind gpu" in found
    (local,) = problems(instance_preferences={"ml.g5.xlarge": ["local.gpu"]})
    assert local.startswith("instance_preferences.ml.g5.xlarge[0]: got local.gpu")
    assert "applies to SageMaker types only" in local
