"""What a use case logs, and under which names its errors reach the state machine."""

import logging

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from traindyno.core.errors import ServiceFault, Throttled
from traindyno.lab.environment import EnvironmentIncomplete, LaunchEnvironment, read_environment
from traindyno.lab.use_case import use_case


def client_error(code: str, status: int = 400) -> ClientError:
    answer = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "ListTrainingJobs")  # type: ignore[arg-type]


def test_a_use_case_logs_one_line_with_its_subject_and_its_findings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with use_case("SubmitRun", execution="e", run="r") as line:
        line.update(job="j")
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.INFO, "SubmitRun")
    fields = {name: getattr(record, name) for name in ("use_case", "execution", "run", "job")}
    assert fields == {"use_case": "SubmitRun", "execution": "e", "run": "r", "job": "j"}
    assert record.__dict__["seconds"] >= 0
    assert "error" not in record.__dict__


def test_a_failing_use_case_logs_one_line_too_and_raises_its_error_unchanged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(KeyError), use_case("PlanRound", execution="e"):
        raise KeyError("round")
    (record,) = caplog.records
    assert (record.levelno, record.__dict__["error"]) == (logging.ERROR, "KeyError")


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (client_error("ThrottlingException"), Throttled),
        (client_error("SlowDown"), Throttled),
        (client_error("InternalFailure", 500), ServiceFault),
        (EndpointConnectionError(endpoint_url="https://example.com"), ServiceFault),
        (client_error("AccessDeniedException"), ClientError),
    ],
    ids=lambda error: getattr(error, "__name__", str(error)[:60]),
)
def test_transient_error_is_raised_under_a_name_retried_by_the_state_machine(
    error: Exception, name: type[Exception]
) -> None:
    """Another error stays as it is."""
    with pytest.raises(name) as caught, use_case("CheckQuotas"):
        raise error
    assert type(caught.value) is name


def test_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAB", "TABLE", "BUCKET", "AWS_REGION", "TRAINING_ROLE_ARN", "SOURCE_S3_URI"):
        monkeypatch.setenv(name, "x")
    monkeypatch.delenv("SECONDS_BETWEEN_STARTS", raising=False)
    with pytest.raises(EnvironmentIncomplete, match=r"lacks the variables SECONDS_BETWEEN_STARTS;"):
        read_environment(LaunchEnvironment)
    monkeypatch.setenv("SECONDS_BETWEEN_STARTS", "1.05")
    assert read_environment(LaunchEnvironment).job_settings.seconds_between_starts == 1.05
