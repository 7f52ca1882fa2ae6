"""The state machine's retries by class of error: interval, number of attempts, and jitter."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_stepfunctions as sfn

from traindyno.core.errors import (
    CapacityUnavailable,
    JobTimeUsed,
    RunsLeft,
    ServiceFault,
    SlotUnavailable,
    Throttled,
)
from traindyno.core.jobs.run_attempts import MOST_ATTEMPTS

LAMBDA_FAULTS = (
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Sandbox.Timedout",
)
# Lambda itself raises the first error, and the services that a function calls lead to the second.
THROTTLING = ("Lambda.TooManyRequestsException", Throttled.__name__)
# With full jitter, 60 waits of up to 60 s take 28 minutes on average, and less than 15 in one of a
# billion cases.
THROTTLING_TRIES = 60
# Of a chain, which is as long as the cap allows, and of throttling
PATIENT_TRIES = 1000
# With full jitter, waits of up to a quarter of an hour outlast the longest max_hours (27 days);
# SubmitRun answers then. A try is four of the 25,000 events that an execution may have.
SLOT_TRIES = 5450


def retry_next_attempts(state: sfn.TaskStateBase) -> None:
    """Adds the retries of a state that submits a job, each of which is a further attempt.

    The suite's own max_attempts and max_hours end them earlier; SubmitRun and FinishRun see to it.
    """
    for error, interval_seconds, max_delay_seconds, tries in (
        (CapacityUnavailable, 60, 1800, MOST_ATTEMPTS),
        (ServiceFault, 10, 600, MOST_ATTEMPTS),
        (RunsLeft, 1, 2, MOST_ATTEMPTS),
        (JobTimeUsed, 1, 2, PATIENT_TRIES),
    ):
        _retry(
            state,
            [error.__name__],
            interval_seconds=interval_seconds,
            max_delay_seconds=max_delay_seconds,
            tries=tries,
        )
    # A slow backoff: a slot that is free within the first hour is found within minutes.
    _retry(
        state,
        [SlotUnavailable.__name__],
        interval_seconds=20,
        max_delay_seconds=900,
        tries=SLOT_TRIES,
        backoff_rate=1.1,
    )
    _retry(state, THROTTLING, interval_seconds=2, max_delay_seconds=120, tries=PATIENT_TRIES)
    _retry(state, LAMBDA_FAULTS, interval_seconds=2, max_delay_seconds=60, tries=8)


def retry_faults(state: sfn.TaskStateBase, tries: int) -> None:
    """Adds the retries of a state without a job.

    Throttling, and runs that are left to record, are retried for at least a quarter of an hour,
    other faults as often as ``tries``.
    """
    _retry(
        state,
        [*THROTTLING, RunsLeft.__name__],
        interval_seconds=2,
        max_delay_seconds=60,
        tries=THROTTLING_TRIES,
    )
    _retry(
        state,
        [ServiceFault.__name__, *LAMBDA_FAULTS],
        interval_seconds=2,
        max_delay_seconds=60,
        tries=tries,
    )


def _retry(
    state: sfn.TaskStateBase,
    errors: Sequence[str],
    *,
    interval_seconds: int,
    max_delay_seconds: int,
    tries: int,
    backoff_rate: float = 2,
) -> None:
    state.add_retry(
        errors=[*errors],
        interval=cdk.Duration.seconds(interval_seconds),
        backoff_rate=backoff_rate,
        max_attempts=tries,
        max_delay=cdk.Duration.seconds(max_delay_seconds),
        jitter_strategy=sfn.JitterType.FULL,
    )
