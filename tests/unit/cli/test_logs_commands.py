"""`traindyno logs`: what is listed, asked, deleted and left alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner, Result

from tests.unit.stubbed import stubbed
from traindyno.aws import clients
from traindyno.cli.main import commands

JOBS, TRANSFORMS = "/aws/sagemaker/TrainingJobs", "/aws/sagemaker/TransformJobs"
ENDPOINT = "/aws/sagemaker/Endpoints/mine--reviews-c1-abc123"
STREAMS = [f"mine--suite-0123abcd-c{number}-t1-a1/algo-1-1795" for number in (1, 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    cloudformation: Stubber
    logs: Stubber

    def destroyed(self) -> None:
        self.cloudformation.add_client_error("describe_stacks", "ValidationError")

    def lists_logs(self) -> None:
        rows = [{"logStreamName": name} for name in STREAMS]
        asked = {"logGroupName": JOBS, "logStreamNamePrefix": "mine--"}
        self.logs.add_response("describe_log_streams", {"logStreams": rows}, asked)
        self.logs.add_client_error("describe_log_streams", "ResourceNotFoundException")
        self.lists_groups(f"{ENDPOINT.rpartition('--')[0]}--", {ENDPOINT: None})

    def lists_groups(self, prefix: str, retention: dict[str, int | None]) -> None:
        rows = [
            {"logGroupName": name, **({} if days is None else {"retentionInDays": days})}
            for name, days in retention.items()
        ]
        self.logs.add_response("describe_log_groups", {"logGroups": rows}, {"logGroupNamePrefix": prefix})

    def expects_deletions(self) -> None:
        for name in STREAMS:
            self.logs.add_response("delete_log_stream", {}, {"logGroupName": JOBS, "logStreamName": name})
        self.logs.add_response("delete_log_group", {}, {"logGroupName": ENDPOINT})

    def lists_for_expiry(self) -> None:
        self.lists_groups(JOBS, {JOBS: None})
        self.lists_groups(TRANSFORMS, {TRANSFORMS: 7})
        self.lists_groups(f"{ENDPOINT.rpartition('--')[0]}--", {ENDPOINT: 90})


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Fails if the command makes a call that was not laid out, or leaves one out."""
    with stubbed("cloudformation") as (cloudformation, of_stacks), stubbed("logs") as (logs, of_logs):
        monkeypatch.setattr(clients, "cloudformation", lambda: cloudformation)
        monkeypatch.setattr(clients, "logs_with_more_retries", lambda: logs)
        yield Account(cloudformation=of_stacks, logs=of_logs)


def run(*words: str, answer: str = "") -> Result:
    return CliRunner().invoke(commands, ["logs", *words], input=answer)


@pytest.mark.parametrize(("options", "answer"), [(["--yes"], ""), ([], "y\n")])
def test_a_destroyed_labs_logs_are_listed_and_deleted(account: Account, options: list[str], answer: str) -> None:
    account.destroyed()
    account.lists_logs()
    account.expects_deletions()
    done = run("delete", "mine", *options, answer=answer)
    assert done.exit_code == 0, done.exception
    assert f"2 log streams in {JOBS}, such as {STREAMS[0]}" in done.stderr
    assert f"log group {ENDPOINT}" in done.stderr
    assert "deleted: 2 log streams, 1 log groups" in done.stderr


@pytest.mark.parametrize("answer", ["", "n\n", "\n"])
def test_nothing_is_deleted_that_no_one_confirmed(account: Account, answer: str) -> None:
    account.destroyed()
    account.lists_logs()
    assert str(run("delete", "mine", answer=answer).exception).startswith("nothing was deleted")


def test_the_logs_of_a_deployed_lab_are_not_even_listed(account: Account) -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    stack: Any = {"StackName": "mine-lab", "CreationTime": at, "StackStatus": "UPDATE_ROLLBACK_FAILED"}
    account.cloudformation.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "mine-lab"})
    done = run("delete", "mine", "--yes")
    assert str(done.exception).startswith("lab mine is deployed, so its jobs may still write logs: run `cdk destroy`")


def test_only_the_labs_own_groups_expire(account: Account) -> None:
    account.lists_for_expiry()
    account.logs.add_response("put_retention_policy", {}, {"logGroupName": ENDPOINT, "retentionInDays": 30})
    done = run("expire", "mine", "--yes")
    assert done.exit_code == 0, done.exception
    assert f"not changed: {JOBS}, which all jobs of the account share; --account-wide changes it too" in done.stderr
    assert f"to be changed: {ENDPOINT}, expires after 90 days\n" in done.stderr


def test_shared_groups_expire_on_request_and_no_group_expires_later_than_before(account: Account) -> None:
    account.lists_for_expiry()
    for name in (ENDPOINT, JOBS):
        account.logs.add_response("put_retention_policy", {}, {"logGroupName": name, "retentionInDays": 14})
    done = run("expire", "mine", "--days", "14", "--account-wide", answer="yes\n")
    assert done.exit_code == 0, done.exception
    assert f"to be changed: {JOBS}, never expires, shared by the account" in done.stderr


def test_no_expiry_is_set_that_no_one_confirmed(account: Account) -> None:
    account.lists_for_expiry()
    assert str(run("expire", "mine").exception).startswith("nothing was changed")


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("expire", "mine", "--days", "10"), "no retention of 10 days; accepted: 1, 3, 5, 7,"),
        (("expire", "mine-", "--yes"), 'got "mine-", expected 1 to 18 lower-case'),
        (("delete", "mine--x", "--yes"), 'got "mine--x", expected 1 to 18 lower-case'),
    ],
)
def test_wrong_words_are_refused_before_anything_is_read(words: tuple[str, ...], problem: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert problem in " ".join(word for word in done.stderr.split() if word != "│")
