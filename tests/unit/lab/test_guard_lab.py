"""What CloudFormation is told when it asks whether the lab may be deleted, or updated with other
settings.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.guard_lab import handler
from tests.sentences import Snapshot
from tests.unit.lab_in_memory import NOW, MemoryLab, make_lab
from tests.unit.serving_in_memory import NAME, MemoryServing
from tests.unit.store.samples import ROW
from tests.unit.stubbed import stubbed
from traindyno.aws import clients
from traindyno.aws.executions import Executions
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.lab_names import SETTINGS_RESOURCE
from traindyno.lab.guard_lab import refusal_to_delete

MACHINE = "arn:aws:states:us-east-1:111111111111:stateMachine:traindyno-suites"
LISTING = {"stateMachineArn": MACHINE, "statusFilter": "RUNNING"}
KEY = '"arn:aws:kms:eu-west-1:111122223333:key/abc"'
DEPLOYED = {"volume_key": KEY, "neuron": "true", "job_tags": ""}


def listed(*names: str) -> dict[str, Any]:
    shared = {
        "stateMachineArn": MACHINE,
        "status": "RUNNING",
        "startDate": datetime.fromtimestamp(NOW, UTC),
    }
    return {
        "executions": [
            {"executionArn": f"{MACHINE}:{name}", "name": name, **shared} for name in names
        ]
    }


def refusal(
    *running: str,
    lab: str = "traindyno",
    services: MemoryLab | None = None,
    serving: MemoryServing | None = None,
) -> str | None:
    with stubbed("stepfunctions") as (client, stubber):
        stubber.add_response("list_executions", listed(*running), LISTING)
        return refusal_to_delete(
            lab=lab,
            executions=Executions(client, MACHINE),
            services=services or MemoryLab(),
            serving=(serving or MemoryServing()).serving,
            now=NOW,
        )


def test_refusal_names_endpoints_in_use_with_the_commands_to_delete_them() -> None:
    serving = MemoryServing()
    for name in (NAME, "traindyno--new"):
        serving.deploy(name=name)
        serving.sagemaker.endpoints[name]["EndpointStatus"] = "Creating"
    text = refusal("albert-1", serving=serving) or ""
    assert "1 suite and 2 endpoints in flight, and nothing was deleted" in text
    assert f"traindyno undeploy traindyno--new; traindyno undeploy {NAME}. " in text


def test_an_idle_lab_may_be_deleted() -> None:
    services = MemoryLab()
    ended = replace(ROW, end=Attempt(number=1, job_name="job-1", outcome=Outcome.COMPLETED))
    services.spending.reserve(ended, cap_usd=Decimal(1))
    assert refusal() is None
    assert refusal(services=services) is None


def test_a_suite_in_flight_is_named_with_its_stop_command(snapshot: Snapshot) -> None:
    snapshot(refusal("albert-1", lab="mine"))


def test_a_running_job_of_an_ended_execution_counts_too() -> None:
    services = MemoryLab()
    services.spending.reserve(ROW, cap_usd=Decimal(1))
    text = refusal("albert-1", services=services) or ""
    assert f"traindyno stop albert-1; traindyno stop {make_lab()[1][0].execution_id}. " in text


def test_many_are_counted_and_a_few_named() -> None:
    text = refusal(*(f"e{number}" for number in range(9))) or ""
    assert "9 suites" in text
    assert "traindyno stop e4; and so on for 4 more" in text
    assert "e5" not in text


def test_a_deleted_state_machine_runs_nothing() -> None:
    with stubbed("stepfunctions") as (client, stubber):
        stubber.add_client_error("list_executions", "StateMachineDoesNotExist")
        assert list(Executions(client, MACHINE).list_running()) == []


@pytest.fixture
def answers() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """CloudFormation's end of it: an address, and what has been put there."""
    received: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            assert not self.headers["Content-Type"]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/answer", received
    server.shutdown()
    server.server_close()


def event(kind: str, url: str, **more: Any) -> dict[str, Any]:
    ids = {"StackId": "stack", "RequestId": "request", "LogicalResourceId": "Guard"}
    given = {
        "ResourceType": "Custom::TraindynoGuard",
        "ResourceProperties": {"ServiceToken": "guard"},
    }
    return {"RequestType": kind, "ResponseURL": url, **ids, **given, **more}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    variables = {
        "LAB": "traindyno",
        "TABLE": "rows",
        "BUCKET": "results",
        "STATE_MACHINE_ARN": MACHINE,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(handler, "connect", lambda _environment: MemoryLab())
    monkeypatch.setattr(handler, "open_serving", lambda _environment: MemoryServing().serving)
    return monkeypatch


def test_creation_and_updates_always_pass_without_a_look(
    answers: tuple[str, list[dict[str, Any]]], environment: pytest.MonkeyPatch
) -> None:
    url, received = answers
    handler.handle(event("Create", url), None)
    handler.handle(event("Update", url, PhysicalResourceId=received[0]["PhysicalResourceId"]), None)
    assert [(answer["Status"], answer["RequestId"]) for answer in received] == [
        ("SUCCESS", "request")
    ] * 2
    # another identity would make CloudFormation delete the old one, which asks again
    assert received[0]["PhysicalResourceId"] == received[1]["PhysicalResourceId"]


def test_deletion_is_answered_with_the_labs_work_in_flight(
    answers: tuple[str, list[dict[str, Any]]], environment: pytest.MonkeyPatch
) -> None:
    url, received = answers
    with stubbed("stepfunctions") as (client, stubber):
        environment.setattr(clients, "stepfunctions", lambda: client)
        for running in (("albert-1",), ()):
            stubber.add_response("list_executions", listed(*running), LISTING)
        handler.handle(event("Delete", url, PhysicalResourceId="Guard-of-the-lab"), None)
        handler.handle(event("Delete", url, PhysicalResourceId="Guard-of-the-lab"), None)
    assert [answer["Status"] for answer in received] == ["FAILED", "SUCCESS"]
    assert "traindyno stop albert-1" in received[0]["Reason"]


@pytest.mark.parametrize(
    ("named", "status", "lost"),
    [
        (
            {"neuron": "true"},
            "UPDATE_IN_PROGRESS",
            f"labs/traindyno.toml lacks settings of the deployed lab: volume_key = {KEY}. ",
        ),
        (None, "UPDATE_IN_PROGRESS", f"volume_key = {KEY}; neuron = true. Add them"),
        ({**DEPLOYED, "volume_key": ""}, None, None),  # given up in so many words
        ({"volume_key": '"another"', "neuron": "true", "notify_email": '"me"'}, None, None),
        ({}, "UPDATE_ROLLBACK_IN_PROGRESS", None),  # the deployment that added them has failed
    ],
)
def test_a_setting_of_the_deployed_lab_can_not_be_forgotten(
    answers: tuple[str, list[dict[str, Any]]],
    environment: pytest.MonkeyPatch,
    named: dict[str, str] | None,
    status: str | None,
    lost: str | None,
) -> None:
    url, received = answers
    kind = {"ResourceType": SETTINGS_RESOURCE, "OldResourceProperties": {"Settings": DEPLOYED}}
    # CloudFormation has no empty mappings.
    properties = {"Settings": named} if named else {}
    with stubbed("cloudformation") as (client, stubber):
        environment.setattr(clients, "cloudformation", lambda: client)
        if status:
            stack = {
                "StackName": "traindyno-lab",
                "StackStatus": status,
                "CreationTime": datetime.fromtimestamp(NOW, UTC),
            }
            stubber.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "stack"})
        handler.handle(event("Update", url, **kind, ResourceProperties=properties), None)
    assert received[0]["Status"] == ("FAILED" if lost else "SUCCESS")
    assert (lost or "") in received[0]["Reason"]


@pytest.mark.parametrize("request_type", ["Create", "Delete"])
def test_the_settings_themselves_are_created_and_deleted_without_a_look(
    answers: tuple[str, list[dict[str, Any]]], environment: pytest.MonkeyPatch, request_type: str
) -> None:
    """A first deployment that fails is rolled back, whatever runs."""
    with stubbed("cloudformation") as (client, _), stubbed("stepfunctions") as (machines, _):
        environment.setattr(clients, "cloudformation", lambda: client)
        environment.setattr(clients, "stepfunctions", lambda: machines)
        settings = {"ResourceType": SETTINGS_RESOURCE, "ResourceProperties": {"Settings": DEPLOYED}}
        handler.handle(event(request_type, answers[0], **settings), None)
    assert [answer["Status"] for answer in answers[1]] == ["SUCCESS"]


def test_a_failing_guard_answers_before_it_fails(
    answers: tuple[str, list[dict[str, Any]]], environment: pytest.MonkeyPatch
) -> None:
    url, received = answers
    with stubbed("stepfunctions") as (client, stubber):
        environment.setattr(clients, "stepfunctions", lambda: client)
        stubber.add_client_error("list_executions", "AccessDeniedException")
        with pytest.raises(ClientError):
            handler.handle(event("Delete", url, PhysicalResourceId="Guard-of-the-lab"), None)
    assert [
        (answer["Status"], "see the log of GuardLab" in answer["Reason"]) for answer in received
    ] == [("FAILED", True)]
