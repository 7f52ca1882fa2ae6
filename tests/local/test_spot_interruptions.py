"""Spot jobs lose their instances at random steps, with and without notice, and each step is counted
once.

The tests run a small script a few times. ``make nightly`` runs it 100 times, and the built-in
training loop ten times.
"""

import io
import json
import tarfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.checkpointed import EVERY, SCRIPT, losses_of_script
from tests.local.conftest import FAST
from tests.local.jobs import BUCKET, client, job_request, wait_until
from tests.local.running_service import RunningService, start_service
from tests.nightly import NIGHTLY
from tests.training.run_documents import run_document
from tests.unit.run_samples import make_cell, make_run, make_suite
from traindyno import bundle
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.jobs.attempt import ended_attempt
from traindyno.core.measurement.run_phases import divide_steps
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.step_log.reader import read_step_log
from traindyno.sagemaker.job_description import epoch_seconds, read_job_end

pytestmark = [pytest.mark.local, pytest.mark.timeout(3600)]
RUNS = 100 if NIGHTLY else 3
BUILT_IN_RUNS = 10
STEPS = 150
INTERRUPTIONS = 2
USD_PER_HOUR = Decimal("0.36")
ENVIRONMENT = {
    "TRAINDYNO_STEP_LOG_DIRECTORY": "/opt/ml/checkpoints/step_log",
    "TRAINDYNO_CHECKPOINT_DIRECTORY": "/opt/ml/checkpoints/state",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRun:
    job: dict[str, Any]
    result: RunResult
    losses: dict[int, float]
    repeated_steps: int


@pytest.fixture(scope="module")
def spot_service(aws: AwsDouble, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The service gives jobs time for a checkpoint after the notice."""
    folder = Path(tmp_path_factory.mktemp("state"))
    options = (*FAST[:2], "--stop-grace-seconds", "30")
    with start_service(folder, aws.endpoint, *options) as running:
        yield running


def stage(aws: AwsDouble, files: dict[str, Any]) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, path in files.items():
            tar.add(path, arcname=name)
    aws.objects[f"{BUCKET}/code/sourcedir.tar.gz"] = packed.getvalue()


def spot_request(name: str, **changes: Any) -> dict[str, Any]:
    return job_request(
        name,
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 900},
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/checkpoints/{name}"},
        Environment=ENVIRONMENT,
        **changes,
    )


def finish(aws: AwsDouble, service: RunningService, request: dict[str, Any]) -> SpotRun:
    sagemaker = client("sagemaker", service.endpoint)
    name = request["TrainingJobName"]
    sagemaker.create_training_job(**request)
    job = wait_until(sagemaker, name, seconds=600)
    prefix = f"{BUCKET}/checkpoints/{name}/step_log/"
    files = {
        key.removeprefix(prefix): body
        for key, body in aws.objects.items()
        if key.startswith(prefix)
    }
    log = read_step_log({key: body.decode().splitlines() for key, body in files.items()})
    end = read_job_end(job)
    attempt = ended_attempt(
        end, number=1, is_last=True, submitted_at=epoch_seconds(job["CreationTime"])
    )
    assert attempt.outcome is not None
    result = build_run_result(
        make_run(make_cell(instance="local.cpu")),
        suite=make_suite(examples=8 * STEPS),
        outcome=attempt.outcome,
        attempts=[attempt],
        step_log=log,
        price=PaidPrice(usd_per_instance_hour=USD_PER_HOUR),
    )
    assert result.measured is not None, result
    return SpotRun(
        job=job,
        result=result,
        losses={point.step: point.loss for point in result.measured.loss.points},
        repeated_steps=sum(len(session.repeated) for session in divide_steps(log.sessions)),
    )


def of_kind(transitions: list[dict[str, Any]], status: str) -> list[dict[str, Any]]:
    return [transition for transition in transitions if transition["Status"] == status]


def miscounts(run: SpotRun, steps: int) -> list[str]:
    """What is wrong with a run that should count each step once."""
    measured = run.result.measured
    assert measured is not None
    interrupted = of_kind(run.job["SecondaryStatusTransitions"], "Interrupted")
    holds = {
        f"completed: {run.job.get('FailureReason')}": run.job["TrainingJobStatus"] == "Completed",
        "every step has one loss": [point.step for point in measured.loss.points]
        == list(range(1, steps + 1)),
        # A session that is lost without notice in its first second leaves no log.
        "no more interruptions than the service had": measured.job.interruptions
        <= len(interrupted),
        f"{len(interrupted)} interruptions are 1 to {INTERRUPTIONS}": 1
        <= len(interrupted)
        <= INTERRUPTIONS,
    }
    return [fact for fact, is_so in holds.items() if not is_so]


def receipt_errors(run: SpotRun) -> list[str]:
    """What is wrong with a receipt that should bill what the service billed, at the price, and no
    interrupted time.
    """
    (line,) = write_receipt([run.result]).lines
    costs = {phase.name: phase.usd for phase in line.phases}
    seconds = Decimal(str(run.job["BillableTimeInSeconds"]))
    holds = {
        f"{line.billable_seconds} s are {seconds} s": line.billable_seconds == seconds,
        f"${line.exact_usd} is the price of {seconds} s": line.exact_usd
        == seconds * USD_PER_HOUR / 3600,
        "interrupted time costs nothing": costs.get("interrupted", Decimal(0)) == 0,
        "the phases add up": sum((cost for cost in costs.values() if cost is not None), Decimal(0))
        == line.usd,
    }
    return [fact for fact, is_so in holds.items() if not is_so]


@pytest.fixture(scope="module")
def interrupted(
    aws: AwsDouble, spot_service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> list[SpotRun]:
    source = tmp_path_factory.mktemp("source")
    (source / "train.py").write_text(SCRIPT)
    stage(aws, bundle.script_files(source))
    faults = {
        "seed": 11,
        "spot_interruption_fraction": 1.0,
        "spot_interruptions": INTERRUPTIONS,
        "spot_notice_fraction": 0.5,
    }
    spot_service.administer("/_local/faults", faults)
    given = {"steps": str(STEPS), "delay": "0.02"}
    requests = [spot_request(f"spot-{number}", HyperParameters=given) for number in range(RUNS)]
    return [finish(aws, spot_service, request) for request in requests]


def test_interrupted_runs_count_each_step_once(interrupted: list[SpotRun]) -> None:
    assert len(interrupted) == RUNS
    assert {
        run.job["TrainingJobName"]: miscounts(run, STEPS)
        for run in interrupted
        if miscounts(run, STEPS)
    } == {}


def test_interrupted_runs_have_the_losses_of_an_uninterrupted_one(
    interrupted: list[SpotRun],
) -> None:
    assert [run.losses for run in interrupted] == [dict(losses_of_script(STEPS))] * RUNS


def test_an_interruption_costs_at_most_the_steps_since_the_last_uploaded_checkpoint(
    interrupted: list[SpotRun],
) -> None:
    for run in interrupted:
        measured = run.result.measured
        assert measured is not None
        assert measured.checkpoint_seconds is not None
        # The steps since the checkpoint before, and those of the second that a log and an upload
        # may lag behind
        assert run.repeated_steps <= measured.job.interruptions * (2 * EVERY + 100)


def test_the_receipts_of_interrupted_runs_are_right(interrupted: list[SpotRun]) -> None:
    assert len(interrupted) == RUNS
    assert {
        run.job["TrainingJobName"]: receipt_errors(run)
        for run in interrupted
        if receipt_errors(run)
    } == {}


@pytest.mark.nightly  # minutes of starting PyTorch
def test_the_built_in_loop_resumes_bit_by_bit(aws: AwsDouble, spot_service: RunningService) -> None:
    steps = 60
    document = run_document(
        workload={
            "model": {
                "config": {
                    "model_type": "gpt2",
                    "vocab_size": 256,
                    "n_embd": 64,
                    "n_layer": 4,
                    "n_head": 4,
                }
            },
            "dataset": {"format": "synthetic"},
            "sequence_length": 64,
        },
        settings={"dropout": 0.1, "strategy": "single"},
        measurement={"max_steps": steps, "checkpoint_every_steps": 10},
    )
    del document["workload"]["tokenizer"]
    stage(aws, bundle.training_files())
    values = {**document, "sagemaker_program": "traindyno_train.py"}
    hyperparameters = {name: json.dumps(value) for name, value in values.items()}

    def run(name: str) -> SpotRun:
        return finish(aws, spot_service, spot_request(name, HyperParameters=hyperparameters))

    spot_service.administer("/_local/faults", {})
    whole = run("whole")
    faults = {
        "seed": 3,
        "spot_interruption_fraction": 1.0,
        "spot_interruptions": 1,
        "spot_notice_fraction": 0.5,
    }
    spot_service.administer("/_local/faults", faults)
    for number in range(BUILT_IN_RUNS):
        result = run(f"built-in-{number}")
        assert miscounts(result, steps) == receipt_errors(result) == []
        assert result.losses == whole.losses
