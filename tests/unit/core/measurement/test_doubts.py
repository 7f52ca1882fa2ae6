"""A run whose process exited with status 0 is doubtful if its log ends in a traceback, or if it
closed no step log.
"""

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import result_from, step_log_of
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.step_log.reader import read_step_log

CAUGHT = (
    "step 59",
    "Traceback (most recent call last):",
    '  File "/opt/ml/code/train.py", line 15, in <module>',
    "    raise OSError(28, 'No space left on device')",
    "OSError: [Errno 28] No space left on device: '/opt/ml/checkpoints/242000'",
)
SAID = (
    "its log ends in a traceback, although it exited with status 0: OSError: [Errno 28] No space "
    "left on device"
)
TOOLKIT = ("2026-11-27 sagemaker-training-toolkit INFO     Reporting training SUCCESS", "")


def result_of(*tail: str, is_ended: bool = True, outcome: Outcome = Outcome.COMPLETED) -> RunResult:
    return result_from(
        step_log_of([1.0] * 40, is_ended=is_ended),
        outcome=outcome,
        price=PaidPrice(usd_per_instance_hour=None),
        log_tail=tail,
    )


@pytest.mark.parametrize(
    "tail",
    [
        CAUGHT,
        (*CAUGHT, *TOOLKIT),
        tuple(f"[1,mpirank:0,algo-1]<stderr>:{line}" for line in CAUGHT),
        (
            "ValueError: the first",
            CAUGHT[1],
            "  File",
            "ValueError",
            "During handling",
            *CAUGHT[1:],
        ),
    ],
    ids=["plain", "the toolkit's line follows", "of MPI", "of two"],
)
def test_a_log_ending_in_a_traceback_is_doubtful(tail: tuple[str, ...]) -> None:
    result = result_of(*tail)
    assert (result.outcome, result.log_tail) == (Outcome.COMPLETED, tail)
    assert (result.message or "").startswith(SAID)
    assert result.samples_per_second is not None


@pytest.mark.parametrize(
    "tail",
    [
        (),
        ("done",),
        (*CAUGHT, "tried again", "step 60", "step 61", "step 62"),
        CAUGHT[:3],
        CAUGHT[2:],
    ],
    ids=["nothing", "done", "went on", "cut off behind", "cut off before"],
)
def test_another_log_is_not(tail: tuple[str, ...]) -> None:
    result = result_of(*tail)
    assert (result.message, result.log_tail) == (None, ())


def test_a_process_with_an_open_step_log_is_doubtful(snapshot: Snapshot) -> None:
    snapshot(result_of(is_ended=False).message)
    assert result_of(is_ended=False, outcome=Outcome.KILLED).message is None


@pytest.mark.parametrize("is_ended", [True, False])
def test_only_the_last_start_of_a_run_makes_it_doubtful(is_ended: bool) -> None:
    """The one before was interrupted, after more steps."""
    log = {
        file_name(): log_lines(step_seconds=[1.0] * 40, is_ended=False),
        file_name(job="job-a2", start=START + 60): log_lines(
            step_seconds=[1.0] * 20, first_step=30, start=START + 60, is_ended=is_ended
        ),
    }
    assert (result_from(read_step_log(log)).message is None) is is_ended
