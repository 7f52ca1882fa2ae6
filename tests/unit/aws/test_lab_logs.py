"""The logs of one lab among those of the account: which are found, deleted and given an expiry."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import botocore.session
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from tests.unit.stubbed import stubbed
from traindyno.aws import clients
from traindyno.aws.lab_logs import RETENTION_DAYS, LabLogs, LogGroup, LogStream

JOBS, TRANSFORMS, ENDPOINTS = (f"/aws/sagemaker/{name}" for name in ("TrainingJobs", "TransformJobs", "Endpoints"))


@contextmanager
def logs_of(lab: str) -> Iterator[tuple[LabLogs, Any]]:
    with stubbed("logs") as (client, stubber):
        yield LabLogs(client, lab), stubber


def streams(*names: str, **more: str) -> dict[str, Any]:
    return {"logStreams": [{"logStreamName": name} for name in names], **more}


def groups(**retention: int | None) -> dict[str, Any]:
    rows = [
        {"logGroupName": name, **({} if days is None else {"retentionInDays": days})}
        for name, days in retention.items()
    ]
    return {"logGroups": rows}


def test_every_page_of_both_shared_groups_is_read_for_the_labs_prefix() -> None:
    with logs_of("a") as (logs, stubber):
        asked = {"logGroupName": JOBS, "logStreamNamePrefix": "a--"}
        stubber.add_response("describe_log_streams", streams("a--s-1/algo-1", nextToken="more"), asked)
        stubber.add_response("describe_log_streams", streams("a--s-2/algo-1"), {**asked, "nextToken": "more"})
        asked = {"logGroupName": TRANSFORMS, "logStreamNamePrefix": "a--"}
        stubber.add_response("describe_log_streams", streams("a--t-check/x"), asked)
        found = logs.streams()
    assert [(each.group, each.name) for each in found] == [
        (JOBS, "a--s-1/algo-1"), (JOBS, "a--s-2/algo-1"), (TRANSFORMS, "a--t-check/x"),
    ]  # fmt: skip


def test_an_account_that_never_ran_a_job_has_no_streams() -> None:
    with logs_of("a") as (logs, stubber):
        stubber.add_client_error("describe_log_streams", "ResourceNotFoundException")
        stubber.add_client_error("describe_log_streams", "ResourceNotFoundException")
        assert logs.streams() == []


@pytest.mark.parametrize("lab", ["", "a-", "a--", "A", "a--b", "-a", "*", "a" * 19])
def test_a_text_that_could_be_the_prefix_of_other_labs_is_no_lab(lab: str) -> None:
    with stubbed("logs") as (client, _), pytest.raises(ValueError, match="is not the name of a lab: expected 1 to 18"):
        LabLogs(client, lab)


@pytest.mark.parametrize(("lab", "other"), [("a", "a-b"), ("a", "ab"), ("a-b", "a-b-c"), ("a-b", "a")])
def test_labs_whose_names_begin_alike_share_no_log(lab: str, other: str) -> None:
    """What CloudWatch Logs would find for the prefixes that are asked for."""
    of_jobs = [f"{name}--suite-0123abcd-cell-t1-a1/algo-1" for name in (lab, other)]
    of_endpoints = [f"{ENDPOINTS}/{name}--reviews-c1-abc123" for name in (lab, other)]
    asked: list[dict[str, str]] = []
    with logs_of(lab) as (logs, stubber):
        for operation in ("DescribeLogStreams", "DescribeLogGroups"):
            stubber.client.meta.events.register(
                f"provide-client-params.cloudwatch-logs.{operation}", lambda params, **_: asked.append(dict(params))
            )
        stubber.add_response("describe_log_streams", streams())
        stubber.add_response("describe_log_streams", streams())
        stubber.add_response("describe_log_groups", groups())
        logs.streams()
        logs.own_groups()
    prefixes = [each.get("logStreamNamePrefix") or each["logGroupNamePrefix"] for each in asked]
    assert [name for name in of_jobs if name.startswith(prefixes[0])] == of_jobs[:1]
    assert [name for name in of_endpoints if name.startswith(prefixes[2])] == of_endpoints[:1]
    assert prefixes[1] == prefixes[0]


def test_groups_of_endpoints_are_the_labs_own_and_shared_ones_match_by_whole_name() -> None:
    with logs_of("a") as (logs, stubber):
        own = {"logGroupNamePrefix": f"{ENDPOINTS}/a--"}
        stubber.add_response("describe_log_groups", groups(**{f"{ENDPOINTS}/a--x": None}), own)
        longer = {JOBS: None, f"{JOBS}-of-mine": None}
        stubber.add_response("describe_log_groups", groups(**longer), {"logGroupNamePrefix": JOBS})
        stubber.add_response("describe_log_groups", groups(**{TRANSFORMS: 7}), {"logGroupNamePrefix": TRANSFORMS})
        assert [each.name for each in logs.own_groups()] == [f"{ENDPOINTS}/a--x"]
        assert [(each.name, each.retention_days) for each in logs.shared_groups()] == [(JOBS, None), (TRANSFORMS, 7)]


def test_what_is_already_deleted_counts_as_deleted_and_other_errors_do_not() -> None:
    stream, group = LogStream(group=JOBS, name="a--1/x"), LogGroup(name=f"{ENDPOINTS}/a--x", retention_days=None)
    with logs_of("a") as (logs, stubber):
        asked = {"logGroupName": JOBS, "logStreamName": "a--1/x"}
        stubber.add_client_error("delete_log_stream", "ResourceNotFoundException", expected_params=asked)
        logs.delete_stream(stream)
        stubber.add_client_error("delete_log_group", "AccessDeniedException")
        with pytest.raises(stubber.client.exceptions.ClientError, match="AccessDenied"):
            logs.delete_group(group)


class Raw(BytesIO):
    """A response's body as urllib3 hands it over."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def test_a_throttled_deletion_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("DEFAULT_REGION", "us-east-1"), ("ACCESS_KEY_ID", "x"), ("SECRET_ACCESS_KEY", "x")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    client = clients.logs_with_more_retries.__wrapped__()
    answers = [(400, b'{"__type": "ThrottlingException"}')] * 8 + [(200, b"{}")]
    sent: list[str] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        sent.append(request.url)
        status, body = answers[len(sent) - 1]
        return AWSResponse(request.url, status, HTTPHeaders(), Raw(body))

    client.meta.events.register("before-send.cloudwatch-logs.DeleteLogStream", answer)
    LabLogs(client, "a").delete_stream(LogStream(group=JOBS, name="a--1/x"))
    assert len(sent) == 9


def test_the_days_are_those_that_cloudwatch_logs_accepts() -> None:
    model = botocore.session.get_session().get_service_model("logs")
    text = model.shape_for("Days").documentation
    (listed,) = re.findall(r"Possible values are: ([\d, and]+)", text)
    assert {int(number) for number in re.findall(r"\d+", listed)} == set(RETENTION_DAYS)


@pytest.mark.parametrize(("kept", "is_longer"), [(None, True), (31, True), (30, False), (7, False)])
def test_a_group_that_expires_earlier_stays_as_it_is(kept: int | None, is_longer: bool) -> None:
    assert LogGroup(name=JOBS, retention_days=kept).keeps_longer_than(30) == is_longer
