"""What a failed job means, by the failure files that AWS's toolkit wrote: tests/toolkit records
them.
"""

import json
import re

import pytest

from tests.unit.sagemaker.toolkit_failures import FAILURES, NO_FILES, RECORDS, SILENT, SILENT_LOG
from traindyno.core.jobs.journal_format import EXITED
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import RunEnd
from traindyno.sagemaker.failure_reasons import (
    killed_by_torchruns_log,
    outcome_of,
    read_failure_reason,
)

RECORDED = json.loads(RECORDS.read_text())
KILLED = (
    r"another program, a person or the kernel ended the process \(SIGKILL, exit code (-9|137)\)"
)
# Name → outcome, and what the message is
EXPECTED = {
    "value": (Outcome.USER_CODE_ERROR, r"ValueError: the third batch is broken \(exit code 1\)"),
    "exit status": (Outcome.USER_CODE_ERROR, r'.* ExitCode 7 ErrorMessage "" .*'),
    "killed": (Outcome.KILLED, KILLED),
    "segmentation fault": (
        Outcome.USER_CODE_ERROR,
        r"segmentation fault: .* exit code (-11|139)\)",
    ),
    "out of memory": (Outcome.OUT_OF_MEMORY, r".*CUDA out of memory.*"),
    "host's memory": (Outcome.OUT_OF_MEMORY, r".*MemoryError.*"),
    NO_FILES: (
        Outcome.USER_CODE_ERROR,
        r"rank 0: WorkloadError: /opt/ml/input/data/train: the dataset has no data files.*",
    ),
    "own outcome": (Outcome.LOSS_DIVERGED, r"rank 0: step 7: the loss is nan.*"),
}


@pytest.mark.parametrize("toolkit", sorted(RECORDED))
@pytest.mark.parametrize("name", sorted({*FAILURES, NO_FILES} - {SILENT}))
@pytest.mark.parametrize("is_joined", [False, True])
def test_each_failure_is_recorded_as_it_was(toolkit: str, name: str, is_joined: bool) -> None:
    """SageMaker's copy of the toolkit's file can have spaces for the ends of lines."""
    outcome, words = EXPECTED[name.partition(",")[0]]
    reason = RECORDED[toolkit][name]
    meaning, message = read_failure_reason(" ".join(reason.split()) if is_joined else reason)
    assert meaning is outcome
    assert re.fullmatch(words, message, re.DOTALL), message


@pytest.mark.parametrize("toolkit", sorted(RECORDED))
def test_a_kill_under_torchrun_is_in_the_log_alone(toolkit: str) -> None:
    _, message = read_failure_reason(RECORDED[toolkit][SILENT])
    log = RECORDED[toolkit][SILENT_LOG].splitlines()
    assert killed_by_torchruns_log(message, log) is not None
    stopped = [line.replace("Signal 9", "Signal 15") for line in log]
    assert killed_by_torchruns_log(message, stopped) is None


@pytest.mark.parametrize("toolkit", sorted(RECORDED))
@pytest.mark.parametrize("is_earlier_torchrun", [False, True])
def test_a_shared_jobs_end_has_torchruns_report_read_and_left_out(
    toolkit: str, is_earlier_torchrun: bool
) -> None:
    report = RECORDED[toolkit][SILENT_LOG]
    if is_earlier_torchrun:  # the form of its lines before PyTorch 2.2
        report = re.sub(r"[EW]\d{4} \S+ 14 \S+\]", "ERROR:torch.distributed.elastic:", report)
    end = RunEnd(reason=EXITED, exit_code=1, failure=report, ended_at=0.0, own_seconds=1.0, place=1)
    meaning, message = outcome_of(end)
    assert meaning is Outcome.KILLED
    assert re.fullmatch(
        r"another program, .* \(SIGKILL, exit code 1\); its last output: step 7", message or ""
    ), message


def test_both_versions_were_recorded_with_each_failure() -> None:
    assert {name: set(versions) for name, versions in RECORDED.items()} == {
        toolkit: {*FAILURES, NO_FILES, SILENT_LOG} for toolkit in ("5.1.1", "5.1.4")
    }
