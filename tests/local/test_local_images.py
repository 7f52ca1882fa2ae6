"""A job's image decides which interpreter it gets in the local cloud."""

import sys
from pathlib import Path

from localcloud.home import ENVIRONMENTS, REPO_ROOT
from localcloud.sagemaker_service.host.process_environment import READY_MARK, XLA_FOLDER
from tests.local.aws_double import AwsDouble
from tests.local.conftest import FAST
from tests.local.jobs import BUCKET, client, job_request, stage_script, wait_until
from tests.local.running_service import start_service
from traindyno.core.jobs.outcome import Outcome
from traindyno.sagemaker.failure_reasons import read_failure_reason
from traindyno.sagemaker.images import LOCAL_IMAGE, LOCAL_XLA_IMAGE

TELL = """
import os, sys
print("run by", sys.executable, "on", os.environ.get("PJRT_DEVICE", "no device"))
"""


def of_image(name: str, image: str, **environment: str) -> dict[str, object]:
    algorithm = {"TrainingImage": image, "TrainingInputMode": "File"}
    return job_request(name, AlgorithmSpecification=algorithm, Environment=environment)


def test_job_finds_its_images_environment_without_a_restart_of_the_service(
    aws: AwsDouble, tmp_path: Path
) -> None:
    stage_script(aws, TELL)
    environments = tmp_path / "environments"
    with start_service(
        tmp_path / "state", aws.endpoint, *FAST, "--environments", str(environments)
    ) as running:
        sagemaker = client("sagemaker", running.endpoint)
        sagemaker.create_training_job(**of_image("early", LOCAL_XLA_IMAGE))
        early = wait_until(sagemaker, "early", seconds=10)
        python = make_environment(environments / "xla")
        names = {"plain": LOCAL_IMAGE, "compiled": LOCAL_XLA_IMAGE}
        for name, image in names.items():
            sagemaker.create_training_job(**of_image(name, image))
        sagemaker.create_training_job(**of_image("chosen", LOCAL_XLA_IMAGE, PJRT_DEVICE="OTHER"))
        assert [
            wait_until(sagemaker, name)["TrainingJobStatus"] for name in (*names, "chosen")
        ] == ["Completed"] * 3
    assert early["TrainingJobStatus"] == "Failed"
    meaning, message = read_failure_reason(early["FailureReason"])
    assert meaning is Outcome.IMAGE_ERROR
    assert f"{environments / 'xla'}; make it with make xla" in message
    assert said(aws, "plain") == f"run by {sys.executable} on no device"
    assert said(aws, "compiled") == f"run by {python} on CPU"
    assert said(aws, "chosen") == f"run by {python} on OTHER"


def make_environment(folder: Path) -> Path:
    """An environment that has this interpreter under another name."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (folder / READY_MARK).touch()
    return python


def said(aws: AwsDouble, name: str) -> str:
    log = aws.objects[f"{BUCKET}/out/{name}/logs/algo-1.log"].decode()
    (line,) = [line for line in log.splitlines() if line.startswith("run by")]
    return line


def test_the_command_named_for_a_missing_image_makes_its_environment() -> None:
    recipe = (REPO_ROOT / "Makefile").read_text().partition("\nxla:")[2].partition("\n\n")[0]
    assert recipe.rstrip().endswith(str((ENVIRONMENTS / XLA_FOLDER).relative_to(REPO_ROOT)))
