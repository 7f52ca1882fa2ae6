"""The published first suite of a new lab runs in the local cloud, where its instances are
simulated.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab
from traindyno.core.lab_names import EVENT_SOURCE
from traindyno.core.s3_keys import plan_key

pytestmark = [pytest.mark.local, pytest.mark.nightly]

SMOKE = REPO_ROOT / "suites/smoke_aws.yaml"
EXECUTION = "smoke-1"
INSTANCE = "ml.m5.large"
CAP_USD = Decimal("0.30")
# The sweep, which finds the ends whose events were lost, runs once a minute.
SWEEP_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """A run of the smoke suite, with the messages of the topic and the event bus."""

    seconds: float
    report: dict[str, Any]
    messages: list[dict[str, Any]]


@pytest.fixture(scope="module")
def smoke(lab: LocalLab) -> Iterator[Smoke]:
    sqs = lab.client("sqs")
    sns = lab.client("sns")
    events = lab.client("events")
    url = sqs.create_queue(QueueName="smoke")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    subscription = sns.subscribe(TopicArn=lab.deployment().topic_arn, Protocol="sqs", Endpoint=arn)[
        "SubscriptionArn"
    ]
    events.put_rule(Name="smoke", EventPattern=json.dumps({"source": [EVENT_SOURCE]}))
    events.put_targets(Rule="smoke", Targets=[{"Id": "queue", "Arn": arn}])
    try:
        lab.grant_quotas(1, INSTANCE)
        began = time.monotonic()
        ran = lab.succeed("run", str(SMOKE), "--local", "--name", EXECUTION, "--format", "json")
        seconds = time.monotonic() - began
        received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5).get(
            "Messages", []
        )
        messages = [json.loads(message["Body"]) for message in received]
        yield Smoke(seconds=seconds, report=ran.json(), messages=messages)
    finally:
        sns.unsubscribe(SubscriptionArn=subscription)
        events.remove_targets(Rule="smoke", Ids=["queue"])
        events.delete_rule(Name="smoke")
        sqs.delete_queue(QueueUrl=url)


def test_two_cells_read_the_tokens_of_one_job(smoke: Smoke) -> None:
    results = smoke.report["results"]
    assert [result["outcome"] for result in results] == ["completed"] * 2
    assert {result["run"]["cell"]["settings"]["batch_size_per_device"] for result in results} == {
        4,
        8,
    }
    (preparation,) = smoke.report["preparations"]
    assert preparation["outcome"] == "completed"
    assert {result["run"]["tokens"]["key"] for result in results} == {
        preparation["preparation"]["key"]
    }
    assert smoke.report["verdict"]["is_simulated"]


def test_events_end_its_jobs_not_the_sweep(smoke: Smoke) -> None:
    # A preparation and the job of both runs: without events each would wait for a sweep.
    assert smoke.seconds < SWEEP_SECONDS


def test_smoke_suite_fits_the_quota_and_costs_less_than_its_cap_by_the_price_list(
    smoke: Smoke, lab: LocalLab
) -> None:
    plan = lab.client("s3").get_object(Bucket=lab.deployment().bucket, Key=plan_key(EXECUTION))[
        "Body"
    ]
    (lane,) = json.loads(plan.read())["lanes"]
    assert (lane["instance_type"], lane["quota"]["applied"], lane["concurrency"]) == (
        INSTANCE,
        1,
        1,
    )
    (price,) = {result["price"]["usd_per_instance_hour"] for result in smoke.report["results"]}
    receipt = lab.receipt(EXECUTION)["receipt"]
    assert {line["instance"] for line in receipt["lines"]} == {INSTANCE}
    billed = [Decimal(line["billable_seconds"]) for line in receipt["lines"]]
    assert len(billed) == 3
    assert [Decimal(line["exact_usd"]) for line in receipt["lines"]] == [
        pytest.approx(seconds * Decimal(price) / 3600) for seconds in billed
    ]
    assert 0 < sum(Decimal(line["exact_usd"]) for line in receipt["lines"]) < CAP_USD


def test_topic_event_and_report_tell_its_verdict(smoke: Smoke, lab: LocalLab) -> None:
    (notice,) = [message for message in smoke.messages if message.get("Type") == "Notification"]
    (event,) = [message for message in smoke.messages if message.get("source") == EVENT_SOURCE]
    detail = event["detail"]
    assert notice["Subject"] == "Traindyno: smoke-aws"
    assert f"Report: {detail['report']}" in notice["Message"]
    assert (detail["execution_id"], detail["suite"]) == (EXECUTION, "smoke-aws")
    assert detail["recommended"] == smoke.report["verdict"]["recommended"]
    bucket, _, key = detail["report"].removeprefix("s3://").partition("/")
    html = lab.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    assert html == (lab.folder / "reports" / f"{EXECUTION}.html").read_bytes()
    assert b"smoke-aws" in html


@pytest.mark.parametrize(
    ("suite", "quotas", "cap_usd"),
    [
        ("smoke_gpu", {"ml.g5.xlarge": 2, "ml.g5.12xlarge": 1}, "12"),
        ("smoke_trainium", {"ml.trn1.2xlarge": 1}, "8"),
    ],
)
def test_the_suites_for_accelerators_are_rehearsed(
    suite: str, quotas: dict[str, int], cap_usd: str, lab: LocalLab
) -> None:
    for instance, count in {INSTANCE: 1, **quotas}.items():
        lab.grant_quotas(count, instance)
    ran = lab.succeed(
        "run",
        str(REPO_ROOT / f"suites/{suite}.yaml"),
        "--local",
        "--name",
        suite,
        "--format",
        "json",
    )
    report = ran.json()
    assert {result["outcome"] for result in report["results"]} == {"completed"}
    assert {result["run"]["cell"]["settings"]["instance"] for result in report["results"]} == set(
        quotas
    )
    assert report["verdict"]["is_simulated"]
    receipt = lab.receipt(suite)["receipt"]
    assert 0 < sum(Decimal(line["exact_usd"]) for line in receipt["lines"]) < Decimal(cap_usd)
