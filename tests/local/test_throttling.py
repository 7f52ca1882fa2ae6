"""Suites end as usual while three of ten requests to every API are throttled.

Two executions run at once, in ``make nightly`` 20.
"""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from localcloud.cloud import require_ports
from localcloud.environment import read_access_key
from localcloud.gate import authorization
from tests.local.chaos_lab import ENDED, ChaosLab, suite_document
from tests.local.jobs import eventually
from tests.local.oracle import check_finished, find_strays, gather
from tests.nightly import NIGHTLY

pytestmark = [pytest.mark.local, pytest.mark.nightly, pytest.mark.timeout(900)]
EXECUTIONS = 20 if NIGHTLY else 2
LANE = (
    "ml.g4dn.8xlarge"  # no other test uses this cloud, because they count the jobs of their lanes
)
THROTTLED_SHARE = 0.3
SEED = 11
NAMES = [f"throttled-{number}" for number in range(EXECUTIONS)]
IMPATIENT = Config(retries={"total_max_attempts": 1})
REQUESTS = 100


@pytest.fixture(scope="module")
def throttled(chaos: ChaosLab) -> Iterator[ChaosLab]:
    """The lab after all executions have ended and the throttling is off."""
    machine = chaos.lab.deployment().state_machine_arn
    arns = [chaos.execution_arn(name) for name in NAMES]
    steps = chaos.client("stepfunctions")
    suite = {"name": "throttled", **suite_document((LANE,), 1, 3600)}
    chaos.administer("/_local/faults", {"seed": SEED, "throttling_fraction": THROTTLED_SHARE})
    chaos.throttle(THROTTLED_SHARE, SEED)
    try:
        # The executions would show nothing with fewer: 30 of 100 requests are expected to be
        # refused.
        assert count_throttled(chaos.lab.client("stepfunctions", IMPATIENT), machine) > 10
        for name in NAMES:
            steps.start_execution(stateMachineArn=machine, name=name, input=json.dumps(suite))
        eventually(
            lambda: all(
                steps.describe_execution(executionArn=arn)["status"] in ENDED for arn in arns
            ),
            800,
            1,
        )
    finally:
        chaos.throttle(0.0, SEED)
        chaos.administer("/_local/faults", {})
    yield chaos


def count_throttled(steps: Any, machine_arn: str) -> int:
    refused = 0
    for _ in range(REQUESTS):
        try:
            steps.describe_state_machine(stateMachineArn=machine_arn)
        except ClientError as error:
            assert error.response["Error"]["Code"] == "ThrottlingException"
            refused += 1
    return refused


@pytest.mark.parametrize("name", NAMES)
def test_an_execution_succeeds_and_its_books_agree(throttled: ChaosLab, name: str) -> None:
    assert throttled.execution_status(name) == "SUCCEEDED"
    receipt: Any = throttled.document("report", name, "--receipt")["receipt"]
    evidence = gather(throttled, name)
    assert check_finished(evidence, name, receipt) == []
    assert find_strays(evidence) == []
    # Throttling costs only time: no run needed a second job.
    assert [len(result["attempts"]) for result in evidence.results(name).values()] == [1] * 3


def test_a_throttled_request_with_a_late_body_leaves_its_connection_open(
    throttled: ChaosLab,
) -> None:
    connection = http.client.HTTPConnection(
        "127.0.0.1", require_ports(throttled.home).aws, timeout=30
    )
    signature = authorization(read_access_key(throttled.home))["Authorization"]
    throttled.throttle(1.0, SEED)
    try:
        connection.connect()
        opened = connection.sock
        for _ in range(2):
            connection.putrequest("POST", "/")
            connection.putheader("X-Amz-Target", "AWSStepFunctions.ListStateMachines")
            connection.putheader("Content-Type", "application/x-amz-json-1.0")
            connection.putheader("Content-Length", "2")
            connection.putheader("Authorization", signature)
            connection.endheaders()
            time.sleep(0.3)
            connection.send(b"{}")
            answer = connection.getresponse()
            assert "ThrottlingException" in answer.read().decode()
            assert connection.sock is opened
    finally:
        throttled.throttle(0.0, SEED)
        connection.close()
