"""CreateTrainingJob's limits: the largest value is accepted, one more is refused."""

from typing import Any

import pytest

from tests.unit.suites import problems, script_document, small_document

PLAN = "arn:aws:sagemaker:us-east-1:111111111111:training-plan/plan-1"


def refused(**workload: Any) -> list[str]:
    return problems(script_document(workload={**script_document()["workload"], **workload}))


def names(count: int) -> list[str]:
    return [f"n{index}" for index in range(count)]


@pytest.mark.parametrize(
    ("field", "most", "expected"),
    [
        ("hyperparameters", 90, "workload.hyperparameters: got 91 names, expected at most 90"),
        ("channels", 16, "workload.channels: got 17 channels, expected at most 16"),
    ],
)
def test_number_of_names_is_limited(field: str, most: int, expected: str) -> None:
    assert refused(**{field: dict.fromkeys(names(most), "s3://bucket/x/")}) == []
    assert refused(**{field: dict.fromkeys(names(most + 1), "s3://bucket/x/")}) == [expected]


def test_metrics_are_limited_in_number_and_length() -> None:
    fitting, more = ({name: f"{name}: (.*)" for name in names(count)} for count in (40, 41))
    assert problems(script_document(job={"metrics": fitting})) == []
    assert problems(script_document(job={"metrics": more})) == ["job.metrics: got 41 metrics, expected at most 40"]
    assert problems(script_document(job={"metrics": {"loss": "(" + "a" * 498 + ")"}})) == []
    assert problems(script_document(job={"metrics": {"loss": "(" + "a" * 499 + ")"}})) == [
        "job.metrics.loss: got 501 characters, expected at most 500"
    ]


def test_values_are_limited_in_length() -> None:
    # the quotes of the JSON text count
    assert refused(hyperparameters={"text": "a" * 2498}) == []
    assert refused(hyperparameters={"text": "a" * 2499}) == [
        "workload.hyperparameters.text: got 2501 characters, expected at most 2500"
    ]
    on_axis = script_document(matrix={"instance": ["ml.g5.xlarge"], "hyperparameters.text": ["a", "a" * 2499]})
    assert problems(on_axis) == ["matrix.hyperparameters.text[1]: got 2501 characters, expected at most 2500"]
    assert refused(environment={"TEXT": "a" * 512}) == []
    assert refused(environment={"TEXT": "a" * 513}) == [
        "workload.environment.TEXT: got 513 characters, expected at most 512"
    ]
    image = "111111111111.dkr.ecr.us-east-1.amazonaws.com/"
    assert refused(image=image.ljust(255, "a")) == []
    assert refused(image=image.ljust(256, "a")) == ["workload.image: got 256 characters, expected at most 255"]


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
    assert (refused(hyperparameters=given) == []) is is_valid


@pytest.mark.parametrize(
    ("name", "is_valid"), [("NAME_1", True), ("_x", True), ("1X", False), ("A-B", False), ("TRAINDYNO_X", False)]
)
def test_variables_have_names_of_a_shell(name: str, is_valid: bool) -> None:
    expected = f'workload.environment.{name}: got "{name}", expected letters, digits and _, not beginning with a digit'
    assert [found.partition(" or TRAINDYNO_")[0] for found in refused(environment={name: "1"})] == (
        [] if is_valid else [expected]
    )


@pytest.mark.parametrize(("name", "is_valid"), [("extra", True), ("train", False), ("a b", False), ("a" * 65, False)])
def test_channels_have_names_of_their_own(name: str, is_valid: bool) -> None:
    assert (refused(channels={name: "s3://bucket/x/"}) == []) is is_valid


@pytest.mark.parametrize(
    ("arn", "says"),
    [
        (PLAN, None),
        ("arn:aws:ec2:us-east-1:111111111111:capacity-reservation/cr-0abc", "can't use EC2 capacity reservations"),
        ("plan-1", 'got "plan-1"'),
    ],
)
def test_a_training_plan_is_named_by_its_arn(arn: str, says: str | None) -> None:
    found = problems(script_document(training_plans={"ml.g5.xlarge": arn}))
    assert len(found) == (says is not None)
    assert all(str(says) in each and ("EC2" in each) is ("ec2" in arn) for each in found)


@pytest.mark.parametrize(("characters", "paths"), [(1500, []), (2500, ["training"] * 2)])
def test_the_settings_of_a_cell_are_one_value(characters: int, paths: list[str]) -> None:
    """SageMaker refuses a job with a longer one, after the preparation was paid."""
    document = small_document()
    document["training"] |= {"strategy": "tensor", "tensor_plan": {"colwise": ["l" * characters]}}
    document["training"]["instance"] = "ml.g5.12xlarge"
    found = [each for each in problems(document) if "characters as JSON, expected at most 2500" in each]
    assert [each.partition(": ")[0] for each in found] == paths
