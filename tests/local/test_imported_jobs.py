"""A ModelTrainer's suite runs to its verdict in the local cloud, and one of its jobs is imported
again.
"""

import json
from typing import Any

import pytest
import yaml

from tests.local.local_lab import LocalLab
from tests.unit.slices.test_imported import CAPTURED, trainer_of
from traindyno.slices.imported.model_trainer import from_model_trainer
from traindyno.slices.imported.suite_of_job import Decisions

pytestmark = [pytest.mark.local, pytest.mark.nightly]

# Prints the arguments that it gets, for the comparison with those that the SDK's drivers would
# pass.
SCRIPT = """
import json, sys, time
from traindyno.callbacks import step_log
print("arguments", json.dumps(sys.argv[1:]), flush=True)
for _ in range(30):
    with step_log.step(samples=10):
        time.sleep(0.002)
"""


@pytest.fixture(scope="module")
def report(lab: LocalLab) -> dict[str, Any]:
    """The report of the recorded trainer's suite; of the trainer only the place is another: this
    machine.
    """
    source = lab.write_script("trainer", SCRIPT)
    code = {**CAPTURED["basic"]["trainer"]["source_code"], "source_dir": source}
    compute = {"instance_type": "local.cpu", "instance_count": 1, "volume_size_in_gb": 30}
    trainer = trainer_of("basic", source_code=code, compute=compute)
    decisions = Decisions(examples=1000, max_usd=50, max_hours=48)  # type: ignore[arg-type]
    document = from_model_trainer(trainer, decisions).document
    document["measurement"]["trials"] = 2
    path = lab.folder / "trainer.yaml"
    path.write_text(yaml.safe_dump(document))
    answer = lab.succeed("run", str(path), "--local", "--name", "trainer", "--format", "json")
    answered: dict[str, Any] = answer.json()
    return answered


def test_a_trainers_suite_runs_to_its_verdict(report: dict[str, Any]) -> None:
    assert report["verdict"]["finding"] == "only_one"
    assert [result["outcome"] for result in report["results"]] == ["completed"] * 2


def test_the_script_gets_the_arguments_of_the_sdks_drivers(
    lab: LocalLab, report: dict[str, Any]
) -> None:
    job = report["results"][0]["attempts"][-1]["job_name"]
    (stream,) = lab.client("logs").describe_log_streams(
        logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=f"{job}/"
    )["logStreams"]
    events = lab.client("logs").get_log_events(
        logGroupName="/aws/sagemaker/TrainingJobs", logStreamName=stream["logStreamName"]
    )["events"]
    (line,) = [event["message"] for event in events if event["message"].startswith("arguments ")]
    words = json.loads(line.removeprefix("arguments "))
    # its drivers keep the order of the trainer, the toolkit sorts; the SDK writes its
    # hyperparameters as JSON or text
    sent = CAPTURED["basic"]["request"]["HyperParameters"]
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        f"--{name}": text for name, text in sent.items()
    } | {"--tag": "1e-05"}


def test_a_job_of_the_execution_is_imported(lab: LocalLab, report: dict[str, Any]) -> None:
    job = report["results"][0]["attempts"][-1]["job_name"]
    decisions = ("--examples", "1000", "--max-usd", "50", "--max-hours", "48")
    lab.succeed("import", job, "--local", "--output", "imported.yaml", *decisions)
    again = yaml.safe_load((lab.folder / "imported.yaml").read_text())
    assert again["workload"]["entry_point"] == "train.py"
    assert again["workload"]["environment"] == {"A": "1"}
    assert again["training"] == {"instance": "local.cpu", "instance_count": 1, "strategy": "single"}
    lab.succeed("plan", "imported.yaml", "--local")


def test_a_missing_job_is_named(lab: LocalLab) -> None:
    answer = lab.traindyno("import", "no-such-job", "--local")
    assert answer.status == 1
    assert "no-such-job: no such training job" in answer.errors
