"""A job that fails while the service's disk is full is not its script's fault, though there is space at its end."""

from pathlib import Path

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.conftest import FAST
from tests.local.jobs import client, job_request, stage_script, wait_until
from tests.local.running_service import start_service
from tests.local.small_disk import is_small_disk, small_disk

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
            assert "No space left on device" in reason
            stage_script(aws, SAYS)
            sagemaker.create_training_job(**job_request("says"))
            reason = wait_until(sagemaker, "says")["FailureReason"]
            assert reason.startswith("AlgorithmError")
            assert "/dev/shm/cache" in reason
