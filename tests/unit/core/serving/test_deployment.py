"""What a deployment has to say, by where it is hosted."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.serving_in_memory import DEPLOYMENT
from traindyno.core.errors import DocumentInvalid
from traindyno.core.serving.deployment import (
    Hosting,
    ModelDeployment,
    check_job_name,
    deployment_name,
)
from traindyno.core.serving.deployment_document import deployment_document, parse_deployment
from traindyno.core.suite.choices import Task

SERVERLESS = replace(
    DEPLOYMENT, hosting=Hosting.SERVERLESS, instance_type=None, usd_per_hour=None, memory_mib=2048, max_concurrency=5
)
TRANSFORM = replace(DEPLOYMENT, hosting=Hosting.TRANSFORM, expires_at=None, input_s3_uri="s3://bucket/requests/")


def paths(deployment: ModelDeployment, **changes: Any) -> list[str]:
    try:
        parse_deployment({**deployment_document(deployment), **changes}, lab="traindyno")
    except DocumentInvalid as error:
        return [problem.path for problem in error.problems]
    return []


@pytest.mark.parametrize("deployment", [DEPLOYMENT, SERVERLESS, TRANSFORM])
def test_a_valid_deployment_reads_back_equal(deployment: ModelDeployment) -> None:
    assert parse_deployment(deployment_document(deployment), lab="traindyno") == deployment


@pytest.mark.parametrize(
    ("deployment", "changes", "path"),
    [
        (SERVERLESS, {"memory_mib": 1025}, "memory_mib"),
        (SERVERLESS, {"memory_mib": 7 * 1024}, "memory_mib"),
        (SERVERLESS, {"max_concurrency": 0}, "max_concurrency"),
        (SERVERLESS, {"max_concurrency": 201}, "max_concurrency"),
        (SERVERLESS, {"max_concurrency": None}, "max_concurrency"),
        (DEPLOYMENT, {"instance_type": "c5.xlarge"}, "instance_type"),
        (DEPLOYMENT, {"instance_type": None}, "instance_type"),
        (DEPLOYMENT, {"instance_count": 0}, "instance_count"),
        (DEPLOYMENT, {"instance_count": 101}, "instance_count"),
        (TRANSFORM, {"instance_count": 101}, "instance_count"),
        (DEPLOYMENT, {"usd_per_hour": "-0.1"}, "usd_per_hour"),
        # 20 min of $0.204 an hour are $0.068
        (DEPLOYMENT, {"max_usd": "0.067999"}, "max_usd"),
        (TRANSFORM, {"max_usd": "0.067999"}, "max_usd"),
        (DEPLOYMENT, {"max_usd": "0.068", "instance_count": 2}, "max_usd"),
        (DEPLOYMENT, {"max_usd": 0}, "max_usd"),
        (DEPLOYMENT, {"max_usd": -5}, "max_usd"),
        (DEPLOYMENT, {"max_usd": "NaN"}, "max_usd"),
        (DEPLOYMENT, {"max_usd": 5, "usd_per_hour": None}, "max_usd"),
        (SERVERLESS, {"max_usd": 5}, "max_usd"),
        (TRANSFORM, {"input_s3_uri": "bucket/requests/"}, "input_s3_uri"),
        (TRANSFORM, {"input_s3_uri": None}, "input_s3_uri"),
        (DEPLOYMENT, {"name": "another--reviews"}, "name"),
        (DEPLOYMENT, {"name": DEPLOYMENT.name + "-"}, "name"),
        (DEPLOYMENT, {"owner": "a;b"}, "owner"),
        (DEPLOYMENT, {"task": Task.SCRIPT.value}, "task"),
    ],
)
def test_each_part_is_checked(deployment: ModelDeployment, changes: dict[str, Any], path: str) -> None:
    assert paths(deployment, **changes) == [path]


@pytest.mark.parametrize(
    ("deployment", "changes"),
    [
        *((SERVERLESS, {"memory_mib": gib * 1024}) for gib in range(1, 7)),
        (SERVERLESS, {"max_concurrency": 1}),
        (SERVERLESS, {"max_concurrency": 200}),
        (DEPLOYMENT, {"instance_type": "local.cpu"}),
        (DEPLOYMENT, {"instance_count": 1}),
        (DEPLOYMENT, {"instance_count": 100}),
        (DEPLOYMENT, {"max_usd": "0.068"}),
        (TRANSFORM, {"max_usd": "0.136", "instance_count": 2}),
        (DEPLOYMENT, {"input_s3_uri": None}),
    ],
)
def test_what_is_just_allowed_is_accepted(deployment: ModelDeployment, changes: dict[str, Any]) -> None:
    assert paths(deployment, **changes) == []


def test_instances_are_paid_together_and_serverless_has_none() -> None:
    assert replace(DEPLOYMENT, instance_count=3).all_instances_usd_per_hour == Decimal("0.612")
    assert SERVERLESS.all_instances_usd_per_hour is None
    assert [each.is_endpoint for each in (DEPLOYMENT, SERVERLESS, TRANSFORM)] == [True, True, False]


def test_a_name_is_cut_to_what_sagemaker_takes() -> None:
    name = deployment_name(lab="traindyno", suite_name="reviews-of-films-and-books", cell_id="c1", unique="abc123")
    # 15 characters of the suite's name, without the hyphen that they end with
    assert name == "traindyno--reviews-of-film-c1-abc123"
    assert deployment_name(lab="traindyno", suite_name="reviews-of-the-year", cell_id="c1", unique="x").endswith(
        "--reviews-of-the-c1-x"
    )
    long = deployment_name(lab="traindyno", suite_name="a", cell_id="c" * 80, unique="x")
    # with the suffix of its check job
    assert len(check_job_name(long)) == 63


def test_an_amount_that_is_too_small_is_refused_with_the_least() -> None:
    with pytest.raises(DocumentInvalid) as refused:
        parse_deployment({**deployment_document(DEPLOYMENT), "max_usd": "0.01"}, lab="traindyno")
    assert str(refused.value).endswith(
        "max_usd: got 0.01, which pays for 176 s of 1 × ml.c5.xlarge; expected at least $0.068, which pays for"
        " 1200 s: up to 600 s until it starts, 600 s until it has ended"
    )
