"""The answers that CloudFormation gets for an image: at the start of its build, or by the event of
its end.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from botocore.stub import Stubber

from lambdas.build_image.handler import handle
from tests.unit.stubbed import stubbed
from traindyno.aws import clients
from traindyno.lab.build_image import IS_SECOND, REQUEST

PROJECT = "lab-image-cpu"
BEFORE = ("SUBMITTED", "QUEUED", "PROVISIONING", "DOWNLOAD_SOURCE", "INSTALL", "PRE_BUILD", "BUILD")
LINK = "https://console/log"
EARLY = ("QUEUED", "PROVISIONING", "DOWNLOAD_SOURCE")


class Answers(HTTPServer):
    """CloudFormation's side of a request: a URL that takes its answer."""

    def __init__(self) -> None:
        self.documents: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), Answering)

    @property
    def request(self) -> dict[str, Any]:
        return {
            "RequestType": "Create",
            "ResponseURL": f"http://127.0.0.1:{self.server_port}/",
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Build",
            "ResourceProperties": {"Project": PROJECT},
        }

    @property
    def variables(self) -> dict[str, str]:
        kept = ("ResponseURL", "StackId", "RequestId", "LogicalResourceId")
        return {REQUEST: json.dumps({name: self.request[name] for name in kept})}


class Answering(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        assert isinstance(self.server, Answers)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.documents.append(json.loads(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def cloudformation() -> Iterator[Answers]:
    with Answers() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def codebuild(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with stubbed("codebuild") as (client, stubber):
        monkeypatch.setattr(clients, "codebuild", lambda: client)
        yield stubber


def lay_out_start(codebuild: Stubber, variables: dict[str, str]) -> None:
    given = [
        {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()
    ]
    wanted = {"projectName": PROJECT, "environmentVariablesOverride": given}
    codebuild.add_response("start_build", {"build": {"id": "b"}}, wanted)


def ended(status: str, phase: str, said: str, variables: dict[str, str]) -> dict[str, Any]:
    """CodeBuild's event, with the members of the sample in its user guide."""
    phases = [
        {"phase-type": earlier, "phase-status": "SUCCEEDED", "phase-context": [": "]}
        for earlier in BEFORE[: BEFORE.index(phase)]
    ]
    last = {"phase-type": phase, "phase-status": status, "phase-context": [said] if said else []}
    detail = {
        "build-status": status,
        "project-name": PROJECT,
        "build-id": f"arn:aws:codebuild:eu-west-1:111122223333:build/{PROJECT}:b",
        "additional-information": {
            "environment": {
                "environment-variables": [
                    {"name": name, "type": "PLAINTEXT", "value": value}
                    for name, value in {"IMAGE": "uri", **variables}.items()
                ]
            },
            "logs": {"deep-link": LINK},
            "phases": [*phases, last, {"phase-type": "COMPLETED"}],
        },
    }
    return {"source": "aws.codebuild", "detail": detail}


def test_a_build_is_started_with_the_parameters_of_its_answer_and_answers_nothing_yet(
    cloudformation: Answers, codebuild: Stubber
) -> None:
    lay_out_start(codebuild, cloudformation.variables)
    handle(cloudformation.request, None)
    codebuild.assert_no_pending_responses()
    assert cloudformation.documents == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("AccountLimitExceededException", "Cannot have more than 0 builds in queue"),
        ("InvalidInputException", "see the log of BuildImage"),
    ],
)
def test_a_build_without_a_start_is_answered_at_once(
    cloudformation: Answers, codebuild: Stubber, code: str, said: str
) -> None:
    codebuild.add_client_error("start_build", code, "Cannot have more than 0 builds in queue")
    if code == "AccountLimitExceededException":
        handle(cloudformation.request, None)
    else:
        with pytest.raises(Exception, match=code):
            handle(cloudformation.request, None)
    (answer,) = cloudformation.documents
    assert answer["Status"] == "FAILED"
    assert said in answer["Reason"]


def test_a_deletion_is_answered_without_a_build(
    cloudformation: Answers, codebuild: Stubber
) -> None:
    handle({**cloudformation.request, "RequestType": "Delete", "PhysicalResourceId": "id"}, None)
    codebuild.assert_no_pending_responses()
    (answer,) = cloudformation.documents
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "id")


def test_a_succeeded_build_is_answered(cloudformation: Answers, codebuild: Stubber) -> None:
    handle(ended("SUCCEEDED", "BUILD", "", cloudformation.variables), None)
    codebuild.assert_no_pending_responses()
    assert cloudformation.documents == [
        {
            "Status": "SUCCESS",
            "Reason": "",
            "PhysicalResourceId": "Build-of-the-lab",
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Build",
        }
    ]


@pytest.mark.parametrize("phase", EARLY)
@pytest.mark.parametrize("status", ["FAILED", "FAULT"])
def test_a_build_failed_before_its_commands_is_started_once_more(
    cloudformation: Answers, codebuild: Stubber, status: str, phase: str
) -> None:
    again = {**cloudformation.variables, IS_SECOND: "yes"}
    lay_out_start(codebuild, again)
    handle(ended(status, phase, "ACCESS_DENIED: no", cloudformation.variables), None)
    codebuild.assert_no_pending_responses()
    assert cloudformation.documents == []
    handle(ended(status, phase, "ACCESS_DENIED: no", again), None)
    (answer,) = cloudformation.documents
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == (
        f"the build of {PROJECT} ended as {status}; phase {phase}: ACCESS_DENIED: no; "
        f"its log: {LINK}"
    )


@pytest.mark.parametrize(
    ("status", "phase", "said"),
    [
        ("FAILED", "BUILD", "COMMAND_EXECUTION_ERROR: exit status 1"),
        ("FAULT", "BUILD", ""),
        ("STOPPED", "QUEUED", ""),
        ("STOPPED", "BUILD", ""),
        ("TIMED_OUT", "QUEUED", "BUILD_TIMED_OUT: Build has timed out."),
        ("TIMED_OUT", "BUILD", "BUILD_TIMED_OUT: Build has timed out."),
    ],
)
def test_each_other_end_is_answered_with_its_phase_and_its_log(
    cloudformation: Answers, codebuild: Stubber, status: str, phase: str, said: str
) -> None:
    handle(ended(status, phase, said, cloudformation.variables), None)
    codebuild.assert_no_pending_responses()
    (answer,) = cloudformation.documents
    assert answer["Status"] == "FAILED"
    assert (
        f"ended as {status}; phase {phase}: {said or status}; its log: {LINK}" in answer["Reason"]
    )


@pytest.mark.parametrize("code", ["AccountLimitExceededException", "InvalidInputException"])
def test_a_refused_second_start_is_answered(
    cloudformation: Answers, codebuild: Stubber, code: str
) -> None:
    codebuild.add_client_error("start_build", code)
    event = ended("FAILED", "QUEUED", "", cloudformation.variables)
    if code == "AccountLimitExceededException":
        handle(event, None)
    else:
        with pytest.raises(Exception, match=code):
            handle(event, None)
    (answer,) = cloudformation.documents
    assert answer["Status"] == "FAILED"


def test_a_long_reason_fits_into_an_answer(cloudformation: Answers, codebuild: Stubber) -> None:
    """CloudFormation takes 4,096 bytes."""
    handle(ended("FAILED", "BUILD", "x" * 9_000, cloudformation.variables), None)
    codebuild.assert_no_pending_responses()
    (answer,) = cloudformation.documents
    assert len(json.dumps(answer)) < 4_096


def test_a_build_started_by_a_person_answers_nobody(codebuild: Stubber) -> None:
    handle(ended("FAILED", "QUEUED", "", {}), None)
    codebuild.assert_no_pending_responses()
