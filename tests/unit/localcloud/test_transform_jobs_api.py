"""The inputs of transform jobs that the local service refuses."""

from typing import Any

import pytest

from localcloud.sagemaker_service.api.transform_jobs_api import check_input
from localcloud.sagemaker_service.api_error import ApiError


def transform_input(**changes: str) -> dict[str, Any]:
    source = {"S3DataType": changes.pop("S3DataType", "S3Prefix"), "S3Uri": "s3://lab/requests/"}
    return {"DataSource": {"S3DataSource": source}, **changes}


def refusal_of(request: dict[str, Any]) -> ApiError | None:
    try:
        check_input(request)
    except ApiError as error:
        return error
    return None


@pytest.mark.parametrize("changes", [{}, {"CompressionType": "None", "SplitType": "None"}, {"SplitType": "Line"}])
def test_an_input_of_whole_objects_or_lines_is_accepted(changes: dict[str, str]) -> None:
    assert refusal_of(transform_input(**changes)) is None


@pytest.mark.parametrize(
    ("member", "value", "offered"),
    [
        ("S3DataType", "ManifestFile", "S3Prefix"),
        ("CompressionType", "Gzip", "None"),
        ("SplitType", "RecordIO", "None and Line"),
    ],
)
def test_a_refused_input_is_named_with_what_is_offered(member: str, value: str, offered: str) -> None:
    message = f"TransformInput: {member} {value} is not offered; this local service reads {offered}"
    assert str(refusal_of(transform_input(**{member: value}))).endswith(message)
