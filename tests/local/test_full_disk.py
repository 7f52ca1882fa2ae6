"""A full disk is told with its folder, and is no fault of a script if it is the local cloud's."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.conftest import FAST
from tests.local.jobs import client, job_request, stage_script, wait_until
from tests.local.local_lab import LocalLab
from tests.local.running_service import start_service
from tests.local.small_disk import full_disk, is_small_disk, small_disk
from traindyno.callbacks.full_disk import full_folder

SIZE = "64m"
# It frees the space before it fails, as a script that removes its unfinished checkpoint does. The service can still
# write a little.
FILLS = """
import os, pathlib, time
path = pathlib.Path(os.environ["SM_MODEL_DIR"], "filler")
with path.open("wb", buffering=0) as file:
    while (space := os.statvfs(path)).f_bavail * space.f_frsize > 700_000:
        file.write(bytes(2**16))
time.sleep(1.5)
path.unlink()
raise SystemExit("the checkpoint could not be written")
"""
SAYS = "raise OSError(28, 'No space left on device', '/dev/shm/cache')"


def test_a_disk_that_is_full_while_a_job_runs_is_no_error_of_its_script(aws: AwsDouble, tmp_path: Path) -> None:
    with small_disk(tmp_path, SIZE) as disk:
        if not is_small_disk(disk):
            pytest.skip("this machine lets no disk be mounted")
        with start_service(disk, aws.endpoint, "--engine", "process", *FAST) as running:
            sagemaker = client("sagemaker", running.endpoint)
            stage_script(aws, FILLS)
            sagemaker.create_training_job(**job_request("fills"))
            reason = wait_until(sagemaker, "fills")["FailureReason"]
            assert reason.startswith("InternalServerError")
            assert f"No space left on device: the disk of {disk}" in reason
            stage_script(aws, SAYS)
            sagemaker.create_training_job(**job_request("says"))
            reason = wait_until(sagemaker, "says")["FailureReason"]
            assert reason.startswith("AlgorithmError")
            assert "/dev/shm/cache" in reason


def test_the_full_disk_of_a_jobs_folder_is_found_where_an_error_does_not_name_it(tmp_path: Path) -> None:
    """torch.save raises a RuntimeError of its C++ code."""
    with small_disk(tmp_path, "1m") as disk:
        if not is_small_disk(disk):
            pytest.skip("this machine lets no disk be mounted")
        folders = {"SM_OUTPUT_DATA_DIR": "/nowhere", "SM_MODEL_DIR": str(disk)}
        error = RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")
        with full_disk(disk):
            assert full_folder(error, folders) == disk
        assert full_folder(error, {"SM_MODEL_DIR": "/nowhere"}) is None


def test_up_names_a_disk_that_is_too_small_or_fills_while_it_starts(tmp_path: Path) -> None:
    with small_disk(tmp_path, "110m") as disk:
        if not is_small_disk(disk):
            pytest.skip("this machine lets no disk be mounted")
        lab, told = LocalLab(disk), f"error: the disk of {disk / 'home'} {{}}"
        (disk / "other").write_bytes(bytes(20_000_000))
        early = lab.traindyno("local", "up")
        assert (early.status, early.errors.startswith(told.format("has too little space, "))) == (1, True), early.errors
        (disk / "other").unlink()
        with ThreadPoolExecutor() as pool:
            up = pool.submit(lab.traindyno, "local", "up")
            while not lab.home.log("ministack").exists() and not up.done():
                time.sleep(0.01)
            with full_disk(disk):
                late = up.result()
        assert (late.status, late.errors.splitlines()[-1].startswith(told.format(""))) == (1, True), late.errors
        lab.traindyno("local", "down", "--yes")
