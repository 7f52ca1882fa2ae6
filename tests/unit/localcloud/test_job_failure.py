"""A disk is full if the service saw it full: what a script writes about a full disk may be about another one."""

import errno
import os
from pathlib import Path

import pytest

from localcloud.sagemaker_service.host import job_failure
from localcloud.sagemaker_service.host.container_tree import HostTree
from localcloud.sagemaker_service.host.host_training import TrainingEnd
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import failure_text
from traindyno.sagemaker.failure_reasons import read_failure_reason

FULL = os.strerror(errno.ENOSPC)


def reason_of(folder: Path, *, disk_was_full: bool) -> str:
    end = TrainingEnd(
        exit_codes={"algo-1": 1}, first_failed="algo-1", command=["python", "x.py"], disk_was_full=disk_was_full
    )
    return job_failure.training_failure([HostTree(host="algo-1", root=folder)], end, {"algo-1": folder / "log"})


@pytest.mark.parametrize("where", ["log", "output/failure"])
def test_a_scripts_words_about_a_full_disk_are_its_own_error(where: str, tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / where).write_text(failure_text(Outcome.USER_CODE_ERROR, f"rank 0: OSError: {FULL}: '/dev/shm/x'"))
    reason = reason_of(tmp_path, disk_was_full=False)
    assert reason.startswith("AlgorithmError: ")
    assert FULL in reason
    assert read_failure_reason(reason)[0] is Outcome.USER_CODE_ERROR


def test_a_disk_that_was_full_while_the_job_ran_is_an_internal_error(tmp_path: Path) -> None:
    reason = reason_of(tmp_path, disk_was_full=True)
    assert reason.startswith("InternalServerError")
    assert f"({FULL}: the disk of {tmp_path} was full, " in reason
    assert reason.endswith("free space on it: it holds what jobs read and write)")
