"""How jobs end: real failure messages, statuses, time and money, by SageMaker's own
descriptions.
"""

from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest

from traindyno.core.errors import CapacityUnavailable, ServiceFault, SlotUnavailable
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.outcome import NOT_OF_CONTAINER, Outcome
from traindyno.core.step_log.line import failure_text
from traindyno.sagemaker.failure_reasons import read_failure_reason
from traindyno.sagemaker.job_description import (
    INSTANT_STATUSES,
    PHASE_OF_STATUS,
    UnknownJobStatus,
    has_ended,
    read_job_end,
    read_phases,
)

SERVICE = botocore.session.get_session().get_service_model("sagemaker")
MESSAGES = [
    (
        "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
        "different ML instance type.",
        CapacityUnavailable,
    ),
    ("InternalServerError: We encountered an internal error.  Please try again.", ServiceFault),
    ("InternalServerError: We encountered an internal error. Please try again.", ServiceFault),
    (
        "ResourceLimitExceeded: The account-level service limit 'ml.p3dn.24xlarge for training "
        "job usage' is 0 Instances, with current utilization of 0 Instances and a request delta "
        "of 1 Instances.",
        SlotUnavailable,
    ),
    (
        "AlgorithmError: ExecuteUserScriptError:\n"
        "ExitCode 1\n"
        'ErrorMessage "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", '
        "exit code: 1",
        Outcome.OUT_OF_MEMORY,
    ),
    *(
        (
            (
                "AlgorithmError: ExecuteUserScriptError:\n"
                "ExitCode 1\n"
                f'ErrorMessage "{error}", exit code: 1'
            ),
            outcome,
        )
        for error, outcome in (
            ("MemoryError", Outcome.OUT_OF_MEMORY),
            (
                "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB",
                Outcome.OUT_OF_MEMORY,
            ),
            (
                "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried",
                Outcome.OUT_OF_MEMORY,
            ),
            ("OSError: [Errno 12] Cannot allocate memory", Outcome.OUT_OF_MEMORY),
            (
                "terminate called after throwing an instance of 'std::bad_alloc'",
                Outcome.OUT_OF_MEMORY,
            ),
            (
                "ImportError: libgomp.so.1: cannot allocate memory in static TLS block",
                Outcome.USER_CODE_ERROR,
            ),
        )
    ),
    ("AlgorithmError: , exit code: 137", Outcome.KILLED),
    (
        (
            "AlgorithmError: out of memory: the kernel killed 1 processes while the job ran. , "
            "exit code: 137"
        ),
        Outcome.OUT_OF_MEMORY,
    ),
    (
        (
            "ClientError: Please use an instance type with more memory, or reduce the size of "
            "job data."
        ),
        Outcome.OUT_OF_MEMORY,
    ),
    (
        (
            "AlgorithmError: ExecuteUserScriptError:\n"
            "ExitCode 1\n"
            'ErrorMessage "KeyError: loss", exit code: 1'
        ),
        Outcome.USER_CODE_ERROR,
    ),
    (
        "AlgorithmError: Framework Error: \nTraceback (most recent call last)",
        Outcome.USER_CODE_ERROR,
    ),
    (
        "ClientError: Data download failed:No S3 objects found under S3 URL s3://bucket/data",
        Outcome.USER_CODE_ERROR,
    ),
    (
        "ClientError: Data download failed: AccessDenied (403): Access Denied",
        Outcome.PERMISSION_ERROR,
    ),
    (
        (
            "ClientError: Cannot pull image 1.dkr.ecr.us-east-1.amazonaws.com/lab:efa: "
            "CannotPullContainerError"
        ),
        Outcome.IMAGE_ERROR,
    ),
    ("AlgorithmError: exec format error, exit code: 1", Outcome.IMAGE_ERROR),
    ("ClientError: Artifact upload failed:Insufficient disk space", Outcome.USER_CODE_ERROR),
    ("Something that nobody has seen before", Outcome.INTERNAL_ERROR),
    ("", Outcome.INTERNAL_ERROR),
]
OF_CONTAINERS = sorted(set(Outcome) - NOT_OF_CONTAINER)
OWN_PLACES = [
    "AlgorithmError: {}, exit code: 1",
    'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "{}, exit code: 1',
    (
        "AlgorithmError: ExecuteUserScriptError:\n"
        "ExitCode 1\n"
        'ErrorMessage "Traceback\n'
        "KeyError: x\n"
        "{}, exit code: 1"
    ),
]
SERVICE_WORDS = [
    text for text, meaning in MESSAGES if meaning in (Outcome.IMAGE_ERROR, Outcome.PERMISSION_ERROR)
]
OF_SERVICES = [(text, meaning) for text, meaning in MESSAGES if not isinstance(meaning, Outcome)]


def enum_of(shape: str) -> list[str]:
    values: list[str] = SERVICE.shape_for(shape).metadata["enum"]
    return values


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(1_800_000_000 + seconds, UTC)


def described(status: str, secondary: str | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "TrainingJobName": "traindyno-job",
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary or status,
        "ResourceConfig": {
            "InstanceType": "ml.p4d.24xlarge",
            "InstanceCount": 2,
            "VolumeSizeInGB": 30,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxPendingTimeInSeconds": 7200},
        "CreationTime": at(0),
        "TrainingStartTime": at(300),
        "TrainingEndTime": at(900),
        "LastModifiedTime": at(901),
        "BillableTimeInSeconds": 600,
        "TrainingTimeInSeconds": 600,
        **changes,
    }


@pytest.mark.parametrize(("text", "meaning"), MESSAGES)
def test_a_failure_reason_means_an_outcome_or_the_next_attempt(text: str, meaning: object) -> None:
    assert read_failure_reason(text)[0] is meaning


# The failure file, and the end of stderr as the training toolkit quotes it.
@pytest.mark.parametrize(
    ("stopped_for", "expected"),
    [(None, ServiceFault), (Outcome.COST_STOPPED, Outcome.COST_STOPPED)],
)
def test_a_failed_job_told_to_end_is_continued_unless_the_lab_stopped_it(
    stopped_for: Outcome | None, expected: Outcome | type[ServiceFault]
) -> None:
    reason = f"AlgorithmError: {failure_text('stopped_by_user', 'told to end')}"
    job = {**described("Failed", "Failed"), "FailureReason": reason}
    end = read_job_end(job, stopped_for=stopped_for)
    assert (end.outcome or end.next_attempt) is expected


@pytest.mark.parametrize("place", OWN_PLACES)
@pytest.mark.parametrize("outcome", OF_CONTAINERS)
def test_a_containers_own_word_counts_before_every_rule(outcome: Outcome, place: str) -> None:
    text = place.format(failure_text(outcome, "CUDA out of memory at step 3"))
    assert read_failure_reason(text) == (outcome, "CUDA out of memory at step 3, exit code: 1")


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_word_of_ours_within_a_message_is_text(outcome: Outcome) -> None:
    quoted = f"AlgorithmError: KeyError: '{failure_text(outcome, 'no')}', exit code: 3"
    assert read_failure_reason(quoted) == (Outcome.USER_CODE_ERROR, quoted)
    raised = failure_text("loss_diverged", f"rank 0: KeyError: {failure_text(outcome, 'no')}")
    assert read_failure_reason(f"AlgorithmError: {raised}")[0] is Outcome.LOSS_DIVERGED


@pytest.mark.parametrize("place", OWN_PLACES)
@pytest.mark.parametrize("outcome", sorted(NOT_OF_CONTAINER))
def test_no_container_of_a_failed_job_can_say_words_of_the_lab_alone(
    outcome: Outcome, place: str
) -> None:
    """A failed job never completed, whatever its script wrote: its exit code decides."""
    assert (
        read_failure_reason(place.format(failure_text(outcome, "all fine")))[0]
        is Outcome.USER_CODE_ERROR
    )


@pytest.mark.parametrize("place", OWN_PLACES)
@pytest.mark.parametrize(
    "printed",
    [
        *SERVICE_WORDS,
        "Image Not Found /opt/ml/input/data/train/cat 1.jpg",
        "HTTP Error 403: Forbidden",
    ],
)
def test_sagemakers_words_in_a_scripts_output_are_the_scripts(printed: str, place: str) -> None:
    script = printed.replace("AlgorithmError: ", "")
    assert read_failure_reason(place.format(f"OSError: {script}"))[0] is Outcome.USER_CODE_ERROR


@pytest.mark.parametrize(("text", "meaning"), OF_SERVICES)
def test_a_scripts_error_never_leads_to_another_attempt(text: str, meaning: object) -> None:
    """A script may print a service's text, such as the answer to a call of its own: its job is not
    tried again.
    """
    assert read_failure_reason(text)[0] is meaning
    for place in (
        *OWN_PLACES,
        "AlgorithmError: botocore.exceptions.ClientError: An error occurred ({})",
    ):
        assert read_failure_reason(place.format(text))[0] is Outcome.USER_CODE_ERROR


def test_a_word_for_no_outcome_is_read_as_a_message() -> None:
    assert (
        read_failure_reason("AlgorithmError: traindyno-outcome: made_up: no")[0]
        is Outcome.USER_CODE_ERROR
    )


def test_every_status_of_sagemaker_is_an_end_or_not() -> None:
    ended = {status for status in enum_of("TrainingJobStatus") if has_ended(described(status))}
    assert ended == {"Completed", "Failed", "Stopped", "Deleting"}
    with pytest.raises(UnknownJobStatus, match="unknown TrainingJobStatus Exploded"):
        has_ended(described("Exploded"))


def test_every_secondary_status_is_a_phase_or_an_instant() -> None:
    assert set(enum_of("SecondaryStatus")) == set(PHASE_OF_STATUS) | set(INSTANT_STATUSES)


def test_a_job_in_progress_has_no_end_to_read() -> None:
    with pytest.raises(ValueError, match="is InProgress: it has not ended"):
        read_job_end(described("InProgress", "Training"))


def test_a_completed_job_tells_its_time_and_place() -> None:
    end = read_job_end(described("Completed"))
    assert (end.outcome, end.next_attempt, end.message) == (Outcome.COMPLETED, None, "")
    assert (end.billable_seconds, end.training_seconds, end.ended_at) == (600, 600, 1_800_000_900)


@pytest.mark.parametrize(
    ("secondary", "stopped_for", "outcome"),
    [
        ("MaxRuntimeExceeded", None, Outcome.TIMED_OUT),
        ("MaxRuntimeExceeded", Outcome.COST_STOPPED, Outcome.TIMED_OUT),
        ("Stopped", Outcome.COST_STOPPED, Outcome.COST_STOPPED),
        ("Stopped", None, Outcome.STOPPED_BY_USER),
        ("Stopped", Outcome.STOPPED_BY_USER, Outcome.STOPPED_BY_USER),
    ],
)
def test_a_stopped_job_says_for_whom(
    secondary: str, stopped_for: Outcome | None, outcome: Outcome
) -> None:
    end = read_job_end(described("Stopped", secondary), stopped_for=stopped_for)
    assert end.outcome is outcome
    assert (end.message == "stopped on request") == (outcome is Outcome.STOPPED_BY_USER)


def test_a_job_completed_at_its_time_limit_did_not_complete() -> None:
    end = read_job_end(described("Completed", "MaxRuntimeExceeded"))
    assert (end.outcome, end.message) == (Outcome.TIMED_OUT, "still running after 3600 seconds")


def test_short_lived_spot_leads_to_the_next_attempt() -> None:
    end = read_job_end(described("Stopped", "MaxWaitTimeExceeded"))
    assert (end.outcome, end.next_attempt) == (None, CapacityUnavailable)


def test_a_job_stopped_while_pending_at_its_limit_met_a_shortage() -> None:
    never_started = {
        "TrainingStartTime": None,
        "TrainingEndTime": None,
        "BillableTimeInSeconds": None,
    }
    at_limit = described("Stopped", LastModifiedTime=at(7200), **never_started)
    assert read_job_end(at_limit).next_attempt is CapacityUnavailable
    assert read_job_end(at_limit).billable_seconds == 0
    earlier = described("Stopped", LastModifiedTime=at(60), **never_started)
    assert read_job_end(earlier).outcome is Outcome.STOPPED_BY_USER


def test_a_capacity_error_is_the_next_attempt_and_bills_nothing() -> None:
    job = described(
        "Failed", FailureReason=MESSAGES[0][0], TrainingStartTime=None, BillableTimeInSeconds=None
    )
    end = read_job_end(job)
    assert (end.outcome, end.next_attempt, end.billable_seconds) == (None, CapacityUnavailable, 0)


def test_missing_billable_time_after_a_start_is_unknown() -> None:
    assert (
        read_job_end(
            described("Failed", FailureReason="x", BillableTimeInSeconds=None)
        ).billable_seconds
        is None
    )


TRANSITIONS = [
    {
        "Status": "Starting",
        "StartTime": at(0),
        "EndTime": at(100),
        "StatusMessage": (
            "Insufficient capacity error from EC2 while launching instances, retrying!"
        ),
    },
    {
        "Status": "Starting",
        "StartTime": at(100),
        "EndTime": at(160),
        "StatusMessage": "Preparing the instances",
    },
    {
        "Status": "Downloading",
        "StartTime": at(160),
        "EndTime": at(200),
        "StatusMessage": "Downloading the image",
    },
    {"Status": "Training", "StartTime": at(200), "EndTime": at(500), "StatusMessage": ""},
    {"Status": "Interrupted", "StartTime": at(500), "EndTime": at(520), "StatusMessage": ""},
    {"Status": "Training", "StartTime": at(520), "EndTime": at(820), "StatusMessage": ""},
    {"Status": "Uploading", "StartTime": at(820), "EndTime": at(830), "StatusMessage": ""},
    {"Status": "Completed", "StartTime": at(830), "EndTime": at(830), "StatusMessage": ""},
]


def test_phases_add_up_to_the_time_from_creation_to_end() -> None:
    phases = read_phases(TRANSITIONS)
    seconds = {
        name.value: sum(phase.seconds for phase in phases if phase.name is name)
        for name in JobPhaseName
    }
    # 100 waiting, 60 starting, 40 downloading, 300 + 300 training, 20 interrupted, 10 uploading =
    # 830
    assert seconds == {
        "waiting": 100,
        "starting": 60,
        "downloading": 40,
        "training": 600,
        "interrupted": 20,
        "uploading": 10,
        "stopping": 0,
    }
    assert sum(seconds.values()) == 830
    assert phases[0].name is JobPhaseName.WAITING


def test_a_transition_without_an_end_is_left_out() -> None:
    assert read_phases([{"Status": "Training", "StartTime": at(0)}]) == ()
