"""A suite that runs: a stack that asks the guard is not deleted until the lab is idle, and `local
down` asks first.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab, script_suite

pytestmark = pytest.mark.local

STACK = "asks-the-guard"
EXECUTION = "in-flight"
SLEEPING = """
import time
from traindyno.callbacks import step_log
for number in range(600):
    with step_log.step(samples=1) as step:
        time.sleep(0.5)
"""


@pytest.fixture
def cloudformation(lab: LocalLab) -> Iterator[Any]:
    """A client, and a stack of one resource, which asks the deployed lab's guard."""
    client = lab.client("cloudformation")
    functions = lab.client("lambda").get_paginator("list_functions").paginate()
    (guard,) = [
        row["FunctionArn"]
        for page in functions
        for row in page["Functions"]
        if "GuardLab" in row["FunctionName"]
    ]
    resource = {
        "Type": "Custom::TraindynoGuard",
        "Properties": {"ServiceToken": guard, "ServiceTimeout": "60"},
    }
    client.create_stack(
        StackName=STACK, TemplateBody=json.dumps({"Resources": {"Guard": resource}})
    )
    assert await_end(client) == "CREATE_COMPLETE"
    yield client
    client.delete_stack(StackName=STACK)


def await_end(client: Any) -> str:
    """The stack's status when nothing is in progress; "gone" for a deleted stack."""
    for _ in range(240):
        rows = [row for row in client.list_stacks()["StackSummaries"] if row["StackName"] == STACK]
        status = rows[0]["StackStatus"] if rows else "gone"
        if not status.endswith("IN_PROGRESS"):
            return status
        time.sleep(0.25)
    raise AssertionError(f"{STACK} is still {status} after a minute")


def test_a_lab_is_not_deleted_under_a_running_suite(lab: LocalLab, cloudformation: Any) -> None:
    suite = script_suite(
        lab.write_script("sleeping", SLEEPING),
        {"hyperparameters.x": [0]},
        measurement={"trials": 1},
    )
    path = lab.write_suite("sleeping", suite)
    lab.succeed("run", str(path), "--local", "--name", EXECUTION, "--no-wait")
    asked = {"StatusEquals": "InProgress", "NameContains": "sleeping"}
    eventually(
        lambda: lab.client("sagemaker").list_training_jobs(**asked)["TrainingJobSummaries"], 120
    )
    down = lab.traindyno("local", "down")
    told, _, ended = down.errors.strip().splitlines()
    assert told.startswith("running, and would end as failed: ")
    assert EXECUTION in told
    assert (down.status, ended.startswith("error: the local cloud still runs: no answer came")) == (
        1,
        True,
    )
    cloudformation.delete_stack(StackName=STACK)
    assert await_end(cloudformation) == "DELETE_FAILED"
    events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
    assert any(
        f"traindyno stop {EXECUTION}" in event.get("ResourceStatusReason", "") for event in events
    )

    lab.succeed("stop", EXECUTION, "--local")
    cloudformation.delete_stack(StackName=STACK)
    assert await_end(cloudformation) in {"DELETE_COMPLETE", "gone"}
