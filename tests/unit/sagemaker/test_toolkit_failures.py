"""What a failed job means, by the failure files that AWS's toolkit wrote: tests/toolkit records
them.
"""

import json
import re

import pytest

from tests.unit.sagemaker.toolkit_failures import FAILURES, RECORDS
from traindyno.core.jobs.outcome import Outcome
from traindyno.sagemaker.failure_reasons import killed_by_torchruns_log, read_failure_reason

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
    "own outcome": (Outcome.LOSS_DIVERGED, r"rank 0: step 7: the loss is nan.*"),
}
# The toolkit keeps no line of it: RecordRun reads the log.
SILENT = "killed, torchrun"


@pytest.mark.parametrize("toolkit", sorted(RECORDED))
@pytest.mark.parametrize("name", sorted({*FAILURES} - {SILENT}))
def test_each_failure_is_what_it_was(toolkit: str, name: str) -> None:
    outcome, words = EXPECTED[name.partition(",")[0]]
    meaning, message = read_failure_reason(RECORDED[toolkit][name])
    assert meaning is outcome
    assert re.fullmatch(words, message, re.DOTALL), message


@pytest.mark.parametrize("toolkit", sorted(RECORDED))
def test_a_kill_under_torchrun_is_in_the_log_alone(toolkit: str) -> None:
    _, message = read_failure_reason(RECORDED[toolkit][SILENT])
    log = ["step 7", "  traceback : Signal 9 (SIGKILL) received by PID 14115"]
    assert killed_by_torchruns_log(message, log) is not None
    assert killed_by_torchruns_log(message, [log[0], log[1].replace("9", "15", 1)]) is None


def test_both_versions_were_recorded_with_each_failure() -> None:
    assert {name: set(found) for name, found in RECORDED.items()} == {
        toolkit: {*FAILURES} for toolkit in ("5.1.1", "5.1.4")
    }
