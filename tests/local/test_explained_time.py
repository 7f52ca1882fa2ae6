"""The step log explains nearly all of the time that a job is billed for."""

from pathlib import Path
from typing import Any

from tests.local.aws_double import AwsDouble
from tests.local.jobs import client, job_request, stage_script, wait_until
from tests.local.running_service import RunningService
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.measurement.run_phases import OTHER, measure_phases
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

REPO_ROOT = Path(__file__).parents[2]
SCRIPT = """
import time
from traindyno.callbacks import step_log
time.sleep(0.3)  # imports, models, data
for _ in range(100):
    with step_log.step(samples=8):
        time.sleep(0.02)
with step_log.phase("save"):
    time.sleep(0.1)
time.sleep(0.1)
"""


def seconds_of(job: dict[str, Any], status: str) -> float:
    (step,) = (step for step in job["SecondaryStatusTransitions"] if step["Status"] == status)
    seconds: float = (step["EndTime"] - step["StartTime"]).total_seconds()
    return seconds


def explained(
    aws: AwsDouble, service: RunningService, folder: Path, name: str
) -> tuple[dict[str, float], int]:
    """The phases of a job in seconds, and its billable seconds."""
    stage_script(aws, SCRIPT)
    environment = {"PYTHONPATH": str(REPO_ROOT), "TRAINDYNO_STEP_LOG_DIRECTORY": str(folder)}
    sagemaker = client("sagemaker", service.endpoint)
    sagemaker.create_training_job(**job_request(name, Environment=environment))
    job = wait_until(sagemaker, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    (path,) = folder.glob("*/rank-*.jsonl")
    session = read_step_log({f"{name}/{path.name}": path.read_text().splitlines()}).measured
    assert session is not None
    attempt = Attempt(
        number=1,
        job_name=name,
        submitted_at=0.0,
        phase_seconds={"training": seconds_of(job, "Training")},
    )
    phases = measure_phases([attempt], session, tabulate_steps(session), warmup_steps=1)
    return dict(phases), job["BillableTimeInSeconds"]


def test_other_time_is_below_five_percent_of_the_bill(
    aws: AwsDouble, service: RunningService, tmp_path: Path
) -> None:
    """Other programs may stop a process anywhere; what the log leaves out would be left out of each
    of three jobs.
    """
    shares = []
    for name in ("explained-1", "explained-2", "explained-3"):
        phases, billable_seconds = explained(aws, service, tmp_path / name, name)
        assert list(phases) == [
            "launch",
            "import",
            "setup",
            "first_step",
            "steady",
            "save",
            "teardown",
            OTHER,
        ]
        shares.append(phases[OTHER] / billable_seconds)
        if shares[-1] < 0.05:
            return
    raise AssertionError(
        f"shares of time that no phase explains: {shares}; expected less than 0.05"
    )
