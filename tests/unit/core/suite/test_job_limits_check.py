"""CreateTrainingJob's limits: the largest value is accepted, one more is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.suites import problems, script_document, small_document

REGISTRY = "111111111111.dkr.ecr.us-east-1.amazonaws.com/"


def refused(**workload: Any) -> list[str]:
    return problems(script_document(**sections(**workload)))


def sections(**workload: Any) -> dict[str, Any]:
    return {"workload": {**script_document()["workload"], **workload}}


def named(count: int, value: str = "s3://bucket/x/") -> dict[str, str]:
    return {f"n{index}": value for index in range(count)}


def on_axis(value: str) -> dict[str, Any]:
    return {"matrix": {"instance": ["ml.g5.xlarge"], "hyperparameters.text": ["a", value]}}


# The most, and sections that have as many; the quotes of a value's JSON text count.
LIMITS: dict[str, tuple[int, str, Callable[[int], dict[str, Any]]]] = {
    "workload.hyperparameters": (90, "names", lambda n: sections(hyperparameters=named(n))),
    "workload.hyperparameters.text": (
        2500,
        "characters",
        lambda n: sections(hyperparameters={"text": "a" * (n - 2)}),
    ),
    "matrix.hyperparameters.text[1]": (2500, "characters", lambda n: on_axis("a" * (n - 2))),
    "workload.channels": (16, "channels", lambda n: sections(channels=named(n))),
    "workload.environment.TEXT": (
        512,
        "characters",
        lambda n: sections(environment={"TEXT": "a" * n}),
    ),
    "workload.image": (255, "characters", lambda n: sections(image=REGISTRY.ljust(n, "a"))),
    "job.metrics": (40, "metrics", lambda n: {"job": {"metrics": named(n, "loss: (.*)")}}),
    "job.metrics.loss": (
        500,
        "characters",
        lambda n: {"job": {"metrics": {"loss": "(.)".rjust(n, "a")}}},
    ),
}


@pytest.mark.parametrize("path", LIMITS)
def test_numbers_and_lengths_are_limited(path: str) -> None:
    most, unit, sections_with = LIMITS[path]
    assert problems(script_document(**sections_with(most))) == []
    lines = problems(script_document(**sections_with(most + 1)))
    assert lines == [f"{path}: got {most + 1} {unit}, expected at most {most}"]


@pytest.mark.parametrize(
    ("field", "given", "is_valid"),
    [
        ("hyperparameters", {"sagemaker_program": "x"}, False),
        ("hyperparameters", {"sagemaker_distributed_dataparallel_custom_mpi_options": "x"}, True),
        ("hyperparameters", {"sagemaker_mpi_custom_mpi_options": "x"}, False),
        ("hyperparameters", {"sagemaker_mpi_custom_mpi_options": "x", "mp_parameters": "y"}, True),
        *(
            ("channels", {name: "s3://bucket/x/"}, name == "extra")
            for name in ("extra", "code", "a b", "a" * 65)
        ),
    ],
)
def test_names_of_the_launchers_and_the_lab_are_refused_but_for_mpis(
    field: str, given: dict[str, Any], is_valid: bool
) -> None:
    assert (refused(**{field: given}) == []) is is_valid


def test_a_hyperparameter_without_a_name_is_refused() -> None:
    line = 'workload.hyperparameters: got the name "", expected one of at least one character'
    assert refused(hyperparameters={"": "1"}) == [line]


@pytest.mark.parametrize("regex", ["(", "[a", "*"])
def test_a_metric_that_is_no_regular_expression_is_refused(regex: str) -> None:
    (line,) = problems(script_document(job={"metrics": {"loss": regex}}))
    assert line.startswith(f'job.metrics.loss: got "{regex}": ')
    assert line.endswith("; expected a regular expression")


def test_a_metric_may_be_in_another_dialect_than_pythons() -> None:
    assert problems(script_document(job={"metrics": {"loss": "(?<loss>.)", "a": "\\p{L}"}})) == []


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [("NAME_1", True), ("_x", True), ("1X", False), ("A-B", False), ("TRAINDYNO_X", False)],
)
def test_variables_have_names_of_a_shell(name: str, is_valid: bool) -> None:
    expected = (
        f'workload.environment.{name}: got "{name}", expected letters, digits and _, not beginning '
        "with a digit"
    )
    assert [line.partition(" or TRAINDYNO_")[0] for line in refused(environment={name: "1"})] == (
        [] if is_valid else [expected]
    )


@pytest.mark.parametrize(("characters", "paths"), [(1500, []), (2500, ["training"] * 2)])
def test_the_settings_of_a_cell_are_one_value(characters: int, paths: list[str]) -> None:
    """SageMaker refuses a job with a longer one, after the preparation was paid."""
    document = small_document()
    document["training"] |= {"strategy": "tensor", "tensor_plan": {"colwise": ["l" * characters]}}
    document["training"]["instance"] = "ml.g5.12xlarge"
    lines = [
        line for line in problems(document) if "characters as JSON, expected at most 2500" in line
    ]
    assert [line.partition(": ")[0] for line in lines] == paths
