"""A run that shared its job has the outcome that a job of its own would have given it."""

import json
import signal
from typing import Any

import pytest

from tests.unit.sagemaker.toolkit_failures import RECORDS
from traindyno.core.jobs.journal_format import (
    EQUAL_BATCHES,
    EXITED,
    OUTPACED,
    REASONS,
    STALLED,
    TIME_LIMIT,
)
from traindyno.core.jobs.outcome import NOT_OF_CONTAINER, Outcome
from traindyno.core.jobs.run_end import OutpacedBound, RunEnd
from traindyno.core.step_log.line import failure_text
from traindyno.sagemaker.failure_reasons import outcome_of, read_failure_reason

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/opt/ml/code/train.py", line 41, in <module>\n    main()\n'
)
SAID = [
    "",
    "the end of a log",
    f"{TRACEBACK}ValueError: the third batch is broken",
    f"{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
    "CapacityError: Unable to provision requested ML compute capacity",
    "InternalServerError: please retry",
]


def of_a_job(said: str, code: int) -> str:
    """The reason of a job of its own, as AWS's toolkit has written one for a script's status 7."""
    recorded: str = json.loads(RECORDS.read_text())["5.1.4"]["exit status"]
    assert 'ExitCode 7\nErrorMessage ""' in recorded
    return recorded.replace("ExitCode 7", f"ExitCode {code}").replace('""', f'"{said}"', 1)


def ended(**changes: Any) -> RunEnd:
    given: dict[str, Any] = {"reason": EXITED, "exit_code": 0, "ended_at": 9.0, "own_seconds": 9.0}
    return RunEnd(**{"place": 1, **given, **changes})


def test_a_run_exiting_without_an_error_is_completed() -> None:
    assert outcome_of(ended()) == (Outcome.COMPLETED, None)


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("code", [1, 3, 137, 139])
def test_a_failed_process_means_the_same_as_for_a_job(said: str, code: int) -> None:
    """A script can write any text; none of them starts the run again."""
    meaning, message = read_failure_reason(of_a_job(said, code))
    by_signal = {"exit_code": None, "signal": code - 128} if code > 128 else {"exit_code": code}
    outcome, told = outcome_of(ended(failure=said or None, **by_signal))
    assert outcome is meaning
    assert told is not None
    assert told.split("Command")[0] == message.split("Command")[0]


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - NOT_OF_CONTAINER))
def test_the_containers_own_words_count(outcome: Outcome) -> None:
    text = failure_text(outcome, "step 7: the loss is nan")
    assert outcome_of(ended(exit_code=1, failure=text)) == (outcome, "step 7: the loss is nan")


def test_a_process_killed_for_memory_by_the_kernel_was_out_of_memory() -> None:
    assert outcome_of(ended(exit_code=None, signal=signal.SIGKILL))[0] is Outcome.KILLED
    assert (
        outcome_of(ended(exit_code=None, signal=signal.SIGKILL, oom_kills=1))[0]
        is Outcome.OUT_OF_MEMORY
    )
    assert outcome_of(ended(exit_code=1, oom_kills=1))[0] is Outcome.USER_CODE_ERROR


@pytest.mark.parametrize("reason", [*sorted(set(REASONS) - {EXITED}), "a later version's"])
def test_every_other_reason_is_named(reason: str) -> None:
    outcome, message = outcome_of(ended(reason=reason, exit_code=None))
    told = {
        TIME_LIMIT: Outcome.TIMED_OUT,
        STALLED: Outcome.TIMED_OUT,
        OUTPACED: Outcome.OUTPACED,
        EQUAL_BATCHES: Outcome.USER_CODE_ERROR,
    }
    assert outcome is told.get(reason, Outcome.INTERNAL_ERROR)
    assert message


def test_a_hopeless_run_says_by_how_much() -> None:
    bound = OutpacedBound(by="b-t1", least_ratio=1.123, steps=5)
    told = outcome_of(ended(reason=OUTPACED, exit_code=None, bound=bound))
    assert told == (Outcome.OUTPACED, "at least 12 % slower than another run of its job")


def test_a_run_ended_by_its_limit_says_the_time() -> None:
    assert (
        outcome_of(ended(reason=TIME_LIMIT, exit_code=None, own_seconds=61.6))[1]
        == "still running after 62 seconds"
    )
