"""CreateTrainingJob's limits: the largest value is accepted, one more is refused."""

from typing import Any

import pytest

from tests.unit.suites import script_document, small_document
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite

PLAN = "arn:aws:sagemaker:us-east-1:111111111111:training-plan/plan-1"


def problems(*, job: dict[str, Any] | None = None, plans: dict[str, str] | None = None, **workload: Any) -> list[str]:
    document = script_document()
    document["workload"] = {**document["workload"], **workload}
    document |= {"job": job} if job else {}
    document |= {"training_plans": plans} if plans else {}
    try:
        parse_suite(document)
    except SuiteInvalid as error:
        return [f"{problem.path}: {problem.message}" for problem in error.problems]
    return []


def names(count: int) -> list[str]:
    return [f"n{index}" for index in range(count)]


def of_size(size: int) -> dict[str, Any]:
    """Hyperparameters, variables, channels or metrics of so many names."""
    return {
        "hyperparameters": dict.fromkeys(names(size), 1),
        "environment": dict.fromkeys(names(size), "1"),
        "channels": {name: f"s3://bucket/{name}/" for name in names(size)},
    }


@pytest.mark.parametrize(
    ("field", "most", "expected"),
    [
        ("hyperparameters", 90, "workload.hyperparameters: got 91 names, expected at most 90"),
        ("channels", 16, "workload.channels: got 17 channels, expected at most 16"),
    ],
)
def test_number_of_names_is_limited(field: str, most: int, expected: str) -> None:
    assert problems(**{field: of_size(most)[field]}) == []
    assert problems(**{field: of_size(most + 1)[field]}) == [expected]


def test_metrics_are_limited_in_number_and_length() -> None:
    fitting, more = ({name: f"{name}: (.*)" for name in names(count)} for count in (40, 41))
    assert problems(job={"metrics": fitting}) == []
    assert problems(job={"metrics": more}) == ["job.metrics: got 41 metrics, expected at most 40"]
    assert problems(job={"metrics": {"loss": "(" + "a" * 498 + ")"}}) == []
    assert problems(job={"metrics": {"loss": "(" + "a" * 499 + ")"}}) == [
        "job.metrics.loss: got 501 characters, expected at most 500"
    ]


def test_values_are_limited_in_length() -> None:
    # the quotes of the JSON text count
    assert problems(hyperparameters={"text": "a" * 2498}) == []
    assert problems(hyperparameters={"text": "a" * 2499}) == [
        "workload.hyperparameters.text: got 2501 characters, expected at most 2500"
    ]
    on_axis = script_document(baseline={}, matrix={"hyperparameters.text": ["a", "a" * 2499]})
    with pytest.raises(
        SuiteInvalid, match=r"matrix.hyperparameters.text\[1\]: got 2501 characters, expected at most 2500"
    ):
        parse_suite(on_axis)
    assert problems(environment={"TEXT": "a" * 512}) == []
    assert problems(environment={"TEXT": "a" * 513}) == [
        "workload.environment.TEXT: got 513 characters, expected at most 512"
    ]
    image = "111111111111.dkr.ecr.us-east-1.amazonaws.com/"
    assert problems(image=image.ljust(255, "a")) == []
    assert problems(image=image.ljust(256, "a")) == ["workload.image: got 256 characters, expected at most 255"]


@pytest.mark.parametrize(
    ("given", "is_valid"),
    [
        ({"sagemaker_program": "x"}, False),
        ({"sagemaker_distributed_dataparallel_custom_mpi_options": "x"}, True),
        ({"sagemaker_mpi_custom_mpi_options": "x"}, False),
        ({"sagemaker_mpi_custom_mpi_options": "x", "mp_parameters": "y"}, True),
    ],
)
def test_the_launchers_own_names_are_refused_but_for_mpis(given: dict[str, Any], is_valid: bool) -> None:
    assert (problems(hyperparameters=given) == []) is is_valid


@pytest.mark.parametrize(
    ("name", "is_valid"), [("NAME_1", True), ("_x", True), ("1X", False), ("A-B", False), ("TRAINDYNO_X", False)]
)
def test_variables_have_names_of_a_shell(name: str, is_valid: bool) -> None:
    expected = f'workload.environment.{name}: got "{name}", expected letters, digits and _, not beginning with a digit'
    assert [found.partition(" or TRAINDYNO_")[0] for found in problems(environment={name: "1"})] == (
        [] if is_valid else [expected]
    )


@pytest.mark.parametrize(("name", "is_valid"), [("extra", True), ("train", False), ("a b", False), ("a" * 65, False)])
def test_channels_have_names_of_their_own(name: str, is_valid: bool) -> None:
    assert (problems(channels={name: "s3://bucket/x/"}) == []) is is_valid


@pytest.mark.parametrize(
    ("arn", "says"),
    [
        (PLAN, None),
        ("arn:aws:ec2:us-east-1:111111111111:capacity-reservation/cr-0abc", "can't use EC2 capacity reservations"),
        ("plan-1", 'got "plan-1"'),
    ],
)
def test_a_training_plan_is_named_by_its_arn(arn: str, says: str | None) -> None:
    found = problems(plans={"ml.g5.xlarge": arn})
    if says is None:
        assert found == []
    else:
        assert len(found) == 1
        assert says in found[0]
        assert ("EC2" in found[0]) is ("ec2" in arn)


@pytest.mark.parametrize(("characters", "paths"), [(1500, []), (2500, ["training"] * 2)])
def test_the_settings_of_a_cell_are_one_value(characters: int, paths: list[str]) -> None:
    """SageMaker refuses a job with a longer one, after the preparation was paid."""
    document = small_document()
    document["training"] |= {"strategy": "tensor", "tensor_plan": {"colwise": ["l" * characters]}}
    document["training"]["instance"] = "ml.g5.12xlarge"
    try:
        parse_suite(document)
        found = []
    except SuiteInvalid as error:
        found = [each.path for each in error.problems if "characters as JSON, expected at most 2500" in each.message]
    assert found == paths
