"""State change events reach the Lambda functions of the rules that they meet, at least once."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.event_delivery import is_match
from tests.local.aws_double import AwsDouble
from tests.local.conftest import FAST
from tests.local.jobs import client, eventually, job_request, stage_script, wait_until
from tests.local.running_service import start_service

ENDS = {
    "source": ["aws.sagemaker"],
    "detail-type": ["SageMaker Training Job State Change"],
    "detail": {"TrainingJobStatus": ["Completed", "Failed", "Stopped"]},
}


@pytest.fixture
def quiet_aws() -> Iterator[AwsDouble]:
    double = AwsDouble()
    stage_script(double, "print('done')")
    yield double
    double.close()


def run_one(aws: AwsDouble, folder: Path, expected_events: int) -> list[dict[str, Any]]:
    with start_service(folder, aws.endpoint, *FAST) as running:
        sagemaker = client("sagemaker", running.endpoint)
        sagemaker.create_training_job(**job_request("told", Tags=[{"Key": "lab", "Value": "l"}]))
        wait_until(sagemaker, "told")
        eventually(lambda: len(aws.invocations) >= expected_events)
        eventually(lambda: running.health()["undelivered_events"] == 0)
    return aws.invocations


def test_the_end_of_a_job_reaches_a_rule_for_ends_only(
    quiet_aws: AwsDouble, tmp_path: Path
) -> None:
    quiet_aws.patterns["ends"] = ENDS
    (event,) = run_one(quiet_aws, tmp_path, 1)
    assert (event["source"], event["account"]) == ("aws.sagemaker", "000000000000")
    assert event["resources"] == [event["detail"]["TrainingJobArn"]]
    assert event["detail"]["TrainingJobStatus"] == "Completed"
    assert event["detail"]["Tags"] == {"lab": "l"}
    assert event["detail"]["CreationTime"] > 10**12
    assert "BillableTimeInSeconds" not in event["detail"]


def test_every_step_of_the_status_is_an_event(quiet_aws: AwsDouble, tmp_path: Path) -> None:
    quiet_aws.patterns["all"] = {"source": ["aws.sagemaker"]}
    events = run_one(quiet_aws, tmp_path, 5)
    steps = ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert sorted(event["detail"]["SecondaryStatus"] for event in events) == sorted(steps)


def test_an_unreachable_function_is_tried_again(quiet_aws: AwsDouble, tmp_path: Path) -> None:
    quiet_aws.patterns["ends"] = ENDS
    quiet_aws.failing_invocations = 5
    (event,) = run_one(quiet_aws, tmp_path, 1)
    assert event["detail"]["TrainingJobStatus"] == "Completed"


def test_events_wait_on_disk_while_eventbridge_is_away(
    quiet_aws: AwsDouble, tmp_path: Path
) -> None:
    quiet_aws.patterns["ends"] = ENDS
    with start_service(tmp_path, "http://127.0.0.1:9", *FAST) as running:
        sagemaker = client("sagemaker", running.endpoint)
        sagemaker.create_training_job(**job_request("offline"))
        assert wait_until(sagemaker, "offline")["TrainingJobStatus"] == "Failed"
        running.process.kill()
    with sqlite3.connect(tmp_path / "state.sqlite") as state:
        # As if the machine had been started since: its monotonic clock was far ahead before.
        assert state.execute("update events set due_seconds = 1e9").rowcount > 0
    with start_service(tmp_path, quiet_aws.endpoint, *FAST):
        eventually(lambda: len(quiet_aws.invocations) == 1)
    assert quiet_aws.invocations[0]["detail"]["TrainingJobName"] == "offline"


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ({"a": [1, 2]}, True),
        ({"a": [2]}, False),
        ({"d": {"name": [{"prefix": "tr"}]}}, True),
        ({"d": {"name": [{"prefix": "x"}]}}, False),
        ({"d": {"absent": ["x"]}}, False),
        ({"list": ["q"]}, True),
    ],
)
def test_plain_values_and_prefixes_are_matched(pattern: dict[str, Any], answer: bool) -> None:
    event = {"a": 1, "d": {"name": "training"}, "list": ["p", "q"]}
    assert is_match(pattern, event) is answer
