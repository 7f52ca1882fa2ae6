"""Checks of a suite's sections, at the values where they begin to refuse."""

from typing import Any

import pytest

from tests.unit.suites import script_document, small_document
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


@pytest.mark.parametrize(("region", "is_valid"), [("us-west-2", True), ("us-gov-west-1", True), ("west", False)])
def test_regions_are_named_as_aws_names_them(region: str, is_valid: bool) -> None:
    found = problems(pricing={"regions": ["eu-west-1", region]})
    assert found == ([] if is_valid else [f'pricing.regions[1]: got "{region}", expected a region such as us-west-2'])


SIZED: dict[str, Any] = {
    "training": {"instance": "ml.g5.xlarge"},
    "matrix": {"instance_count": [1], "hyperparameters.max_steps": [100], "hyperparameters.config": ["one.json"]},
    "include": [{"instance_count": 2, "hyperparameters.max_steps": 50, "hyperparameters.config": "two.json"}],
}


def scaling_problems(names: Any, document: dict[str, Any] | None = None) -> list[str]:
    try:
        parse_suite(script_document(**(document or SIZED), scaling={"with": names}))
    except SuiteInvalid as error:
        return [f"{problem.path}: {problem.message}" for problem in error.problems]
    return []


@pytest.mark.parametrize("names", ["auto", [], ["max_steps"], ["max_steps", "config"]])
def test_a_suite_may_name_the_arguments_that_follow_the_size(names: Any) -> None:
    assert scaling_problems(names) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["steps"],
            'scaling.with[0]: got "steps", expected an argument that differs between cells: config, max_steps',
        ),
        (
            ["epochs"],
            'scaling.with[0]: got "epochs", expected an argument that differs between cells: config, max_steps',
        ),
        (
            ["max_steps", "hyperparameters.config"],
            'scaling.with[1]: got "hyperparameters.config", expected an argument that differs between cells: config,'
            " max_steps",
        ),
        (["max_steps", "max_steps"], 'scaling.with[1]: got "max_steps" again, expected each name once'),
        ("max_steps", 'scaling.with: got "max_steps", expected auto or a list'),
        ([3], "scaling.with[0]: got 3, expected text"),
    ],
)
def test_what_follows_the_size_is_an_argument_that_varies_each_once(names: Any, expected: str) -> None:
    assert scaling_problems(names) == [expected]


def test_two_cells_of_one_size_can_not_differ_in_what_follows_the_size_only() -> None:
    control = {"instance_count": 2, "hyperparameters.max_steps": 100, "hyperparameters.config": "two.json"}
    document = {**SIZED, "include": [*SIZED["include"], control]}
    (found,) = scaling_problems(["max_steps", "config"], document)
    assert found == (
        "scaling.with: 2 × ml.g5.xlarge · config two.json · max_steps 50 and 2 × ml.g5.xlarge · config two.json"
        " · max_steps 100 differ in max_steps, config only: expected arguments with one value for each instance_count"
        " in cells that are equal in all else"
    )
    assert scaling_problems(["config"], document) == []


def test_a_built_in_task_has_no_arguments_that_could_follow() -> None:
    (found,) = problems(scaling={"with": ["max_steps"]})
    assert found == "scaling.with: only task script has arguments that can follow the size, expected auto"
    assert problems(scaling={"with": "auto"}) == problems(scaling={"with": []}) == []
