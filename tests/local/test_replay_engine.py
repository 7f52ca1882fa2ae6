"""Simulated jobs: their time, their bill, their step logs, and their injected faults."""

import json
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.local.aws_double import AwsDouble
from tests.local.jobs import BUCKET, client, eventually, job_request, wait_until
from tests.local.running_service import RunningService, start_service
from tests.unit.run_samples import make_cell, make_run, make_suite
from traindyno.core.costs.projection import project_run
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.errors import CapacityUnavailable
from traindyno.core.jobs.attempt import ended_attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.run.tokens import TOKENS_MANIFEST, describe_mismatch
from traindyno.core.step_log.content import StepLog
from traindyno.core.step_log.reader import read_step_log
from traindyno.sagemaker.job_description import epoch_seconds, read_job_end

FAST = (
    "--simulate-all",
    "--grant-quotas",
    "1000",
    "--speed-up",
    "10000",
    "--jump-when-quiet-seconds",
    "0.02",
)
# 3 s download, 10 s load, 5 steps of 2 s, 2 s upload: 25 s billed, 7 s more to start.
PLAIN_TRACE: dict[str, Any] = {
    "start_seconds": 7,
    "download_seconds": 3,
    "load_seconds": 10,
    "warmup_factor": 1,
    "step_seconds": 2,
    "step_relative_deviation": 0,
    "steps": 5,
    "upload_seconds": 2,
}
PLAIN_BILLED_SECONDS = 25
LONG_TRACE: dict[str, Any] = {**PLAIN_TRACE, "steps": 30}
LONG_BILLED_SECONDS = PLAIN_BILLED_SECONDS + 25 * 2


@contextmanager
def replaying(
    folder: Path,
    aws: AwsDouble,
    *options: str,
    traces: dict[str, dict[str, Any]] | None = None,
    **faults: Any,
) -> Iterator[RunningService]:
    trace_folder = folder / "traces"
    trace_folder.mkdir(exist_ok=True)
    for name, trace in (traces or {"plain": PLAIN_TRACE}).items():
        (trace_folder / f"{name}.json").write_text(json.dumps(trace))
    with start_service(
        folder / "state", aws.endpoint, *FAST, "--traces", str(trace_folder), *options
    ) as running:
        if faults:
            running.administer("/_local/faults", faults)
        yield running


def ledger(running: RunningService) -> dict[str, dict[str, Any]]:
    return {row["job_name"]: row for row in running.administer("/_local/ledger")["rows"]}


def simulated_request(name: str, instance_count: int = 1, **changes: Any) -> dict[str, Any]:
    changes.setdefault(
        "ResourceConfig",
        {"InstanceType": "ml.g5.12xlarge", "InstanceCount": instance_count, "VolumeSizeInGB": 30},
    )
    changes.setdefault("StoppingCondition", {"MaxRuntimeInSeconds": 3600})
    return job_request(
        name,
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/cp/{name}/"},
        Environment={"TRAINDYNO_STEP_LOG_DIRECTORY": "/opt/ml/checkpoints/step_log"},
        **changes,
    )


def run_one(running: RunningService, request: dict[str, Any]) -> dict[str, Any]:
    sagemaker = client("sagemaker", running.endpoint)
    sagemaker.create_training_job(**request)
    return wait_until(sagemaker, request["TrainingJobName"])


def logged_files(aws: AwsDouble, name: str) -> dict[str, list[str]]:
    prefix = f"{BUCKET}/cp/{name}/step_log/{name}/"
    files = {key: body for key, body in aws.objects.items() if key.startswith(prefix)}
    return {
        key.removeprefix(f"{BUCKET}/cp/{name}/step_log/"): body.decode().splitlines()
        for key, body in files.items()
    }


def logged(aws: AwsDouble, name: str) -> StepLog:
    return read_step_log(logged_files(aws, name))


def statuses(job: dict[str, Any]) -> list[str]:
    return [step["Status"] for step in job["SecondaryStatusTransitions"]]


def test_job_bills_the_seconds_of_its_trace_and_is_marked_as_simulated(
    aws: AwsDouble, tmp_path: Path
) -> None:
    with replaying(tmp_path, aws) as running:
        job = run_one(running, simulated_request("plain", instance_count=2))
        row = ledger(running)["plain"]
        tags = client("sagemaker", running.endpoint).list_tags(ResourceArn=job["TrainingJobArn"])[
            "Tags"
        ]
    assert statuses(job) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert job["BillableTimeInSeconds"] == job["TrainingTimeInSeconds"] == PLAIN_BILLED_SECONDS
    assert (row["billed_seconds"], row["instance_count"], row["has_ended"]) == (
        PLAIN_BILLED_SECONDS,
        2,
        True,
    )
    assert (job["TrainingStartTime"] - job["CreationTime"]).total_seconds() == 7
    assert all(
        step["StatusMessage"].startswith("Simulated: ")
        for step in job["SecondaryStatusTransitions"]
    )
    assert {"Key": "traindyno:simulated", "Value": "true"} in tags
    log = logged(aws, "plain")
    assert [environment.facts["is_simulated"] for environment in log.environments] == [True] * 8
    assert {environment.host for environment in log.environments} == {"algo-1", "algo-2"}
    (session,) = log.sessions
    for process in session.processes:
        assert [step.end - step.begin for step in process.steps] == pytest.approx([2] * 5)


def test_a_preparation_leaves_a_manifest_marked_as_simulated(
    aws: AwsDouble, tmp_path: Path
) -> None:
    output = {"S3OutputPath": f"s3://{BUCKET}/prepared/abc", "CompressionType": "NONE"}
    tokens = {"preparation": json.dumps({"key": "abc"})}
    with replaying(tmp_path, aws) as running:
        run_one(
            running, simulated_request("tokens", OutputDataConfig=output, HyperParameters=tokens)
        )
        run_one(running, simulated_request("model", OutputDataConfig=output))
    left = {
        key: body for key, body in aws.objects.items() if key.startswith(f"{BUCKET}/prepared/abc/")
    }
    assert [*left] == [f"{BUCKET}/prepared/abc/tokens/output/model/{TOKENS_MANIFEST}"]
    manifest = json.loads(left.popitem()[1])
    assert manifest["is_simulated"]
    assert describe_mismatch(manifest, key="abc") is None


def spot_request(name: str, every_steps: int | None) -> dict[str, Any]:
    measurement = {} if every_steps is None else {"checkpoint_every_steps": every_steps}
    return simulated_request(
        name,
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
        HyperParameters={"measurement": json.dumps(measurement)},
    )


def result_of(job: dict[str, Any], log: StepLog) -> RunResult:
    end = read_job_end(job)
    attempt = ended_attempt(
        end, number=1, is_last=True, submitted_at=epoch_seconds(job["CreationTime"])
    )
    assert attempt.outcome is not None
    return build_run_result(
        make_run(make_cell(instance="ml.g5.12xlarge")),
        suite=make_suite(examples=100_000),
        outcome=attempt.outcome,
        attempts=[attempt],
        step_log=log,
        price=PaidPrice(usd_per_instance_hour=Decimal("7.20"), purchase="spot"),
    )


def steps_of(files: dict[str, list[str]]) -> list[list[int]]:
    """The steps of the first process in each session."""
    logs = [
        [json.loads(line) for line in lines]
        for name, lines in sorted(files.items())
        if "rank-00000" in name
    ]
    return [[line["step"] for line in lines if line["kind"] == "step"] for lines in logs]


@pytest.mark.parametrize("every_steps", [None, 7])
def test_an_interrupted_spot_job_repeats_the_steps_since_its_last_checkpoint(
    aws: AwsDouble, tmp_path: Path, every_steps: int | None
) -> None:
    """A job without checkpoints repeats all of its steps.

    Repeated steps are billed; the interruption is not.
    """
    name = f"spot-{every_steps}"
    interrupted = [{"name_contains": name, "fault": "spot_interruption"}]
    with replaying(
        tmp_path, aws, traces={"long": LONG_TRACE}, seed=5, named=interrupted
    ) as running:
        job = run_one(running, spot_request(name, every_steps))
        whole = run_one(running, spot_request(f"whole-{every_steps}", every_steps))
        row = ledger(running)[name]
    assert statuses(job) == [
        "Starting",
        "Downloading",
        "Training",
        "Interrupted",
        "Starting",
        "Downloading",
        "Training",
        "Uploading",
        "Completed",
    ]
    files = logged_files(aws, name)
    assert len(files) == 2 * 4
    first, second = steps_of(files)
    resumed_at = 0 if every_steps is None else len(first) // every_steps * every_steps
    repeated = len(first) - resumed_at
    assert repeated > 0, "the seed and the name interrupt the job between two checkpoints"
    assert (first, second) == (list(range(len(first))), list(range(resumed_at, 30)))
    # The second start loads and downloads again: 13 s more; 300 s of interruption and 7 s of
    # starting are not billed. Of the rest, 60 % is saved.
    trained = LONG_BILLED_SECONDS + 13 + 2 * repeated
    assert job["BillableTimeInSeconds"] == row["billed_seconds"] == round(trained * 0.4)
    assert job["TrainingTimeInSeconds"] == trained + 307
    check_receipt_and_projection(
        result_of(job, logged(aws, name)),
        result_of(whole, logged(aws, f"whole-{every_steps}")),
        repeated,
    )


def check_receipt_and_projection(interrupted: RunResult, whole: RunResult, repeated: int) -> None:
    """The receipt has the repeated steps.

    The projection has not, because it is for a run without interruptions.
    """
    (line,) = write_receipt([interrupted]).lines
    seconds = {phase.name: phase.seconds for phase in line.phases}
    assert seconds["repeated_steps"] == pytest.approx(2 * repeated, abs=0.01)
    assert seconds["load"] == pytest.approx(2 * 10, abs=0.01)
    mine = project_run(interrupted)
    theirs = project_run(whole)
    assert mine is not None
    assert theirs is not None
    assert mine.instance_hours == pytest.approx(theirs.instance_hours, rel=1e-3)
    assert mine.usd is not None
    assert float(mine.usd) == pytest.approx(
        float(theirs.usd or 0), rel=0.02
    )  # whole seconds are billed


def test_a_capacity_error_ends_the_job_before_it_bills(aws: AwsDouble, tmp_path: Path) -> None:
    with replaying(
        tmp_path, aws, named=[{"name_contains": "short", "fault": "capacity_error"}]
    ) as running:
        job = run_one(running, simulated_request("short-of-capacity"))
        assert run_one(running, simulated_request("unmet"))["TrainingJobStatus"] == "Completed"
        assert ledger(running)["short-of-capacity"]["billed_seconds"] == 0
    assert "BillableTimeInSeconds" not in job
    assert read_job_end(job).next_attempt is CapacityUnavailable


def test_a_wait_for_capacity_ends_at_its_limit(aws: AwsDouble, tmp_path: Path) -> None:
    stopping = {"MaxRuntimeInSeconds": 3600, "MaxPendingTimeInSeconds": 1800}
    with replaying(tmp_path, aws, capacity_wait_fraction=1, capacity_wait_seconds=9000) as running:
        job = run_one(running, simulated_request("pending", StoppingCondition=stopping))
    assert statuses(job) == ["Starting", "Pending", "Stopped"]
    assert read_job_end(job).next_attempt is CapacityUnavailable


def test_out_of_memory_is_told_in_the_containers_own_words(aws: AwsDouble, tmp_path: Path) -> None:
    with replaying(tmp_path, aws, out_of_memory_fraction=1) as running:
        job = run_one(running, simulated_request("full"))
    assert read_job_end(job).outcome is Outcome.OUT_OF_MEMORY


def test_an_overlong_job_is_stopped_and_uploads_its_files(aws: AwsDouble, tmp_path: Path) -> None:
    with replaying(tmp_path, aws, traces={"plain": {**PLAIN_TRACE, "stop_seconds": 7}}) as running:
        job = run_one(
            running, simulated_request("cut", StoppingCondition={"MaxRuntimeInSeconds": 18})
        )
    # 3 s download + 10 s load leave 5 s: two whole steps
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert statuses(job)[-3:] == ["Stopping", "Uploading", "MaxRuntimeExceeded"]
    assert job["BillableTimeInSeconds"] == 18 + 7 + PLAIN_TRACE["upload_seconds"]
    kinds = [json.loads(line)["kind"] for line in next(iter(logged_files(aws, "cut").values()))]
    assert kinds == ["environment", "phase", "step", "step"]


def test_a_stopped_job_ends_soon_and_keeps_its_steps(aws: AwsDouble, tmp_path: Path) -> None:
    long = {**PLAIN_TRACE, "steps": 10_000, "stop_seconds": 8}
    with replaying(
        tmp_path,
        aws,
        "--speed-up",
        "100",
        "--jump-when-quiet-seconds",
        "1e9",
        traces={"long": long},
    ) as running:
        sagemaker = client("sagemaker", running.endpoint)
        sagemaker.create_training_job(
            **simulated_request("stopped", StoppingCondition={"MaxRuntimeInSeconds": 30000})
        )
        wait_until(sagemaker, "stopped", frozenset({"Training"}))
        first = sagemaker.describe_training_job(TrainingJobName="stopped")
        eventually(
            lambda: (
                running.administer("/_local/clock")["now_ms"]
                > first["CreationTime"].timestamp() * 1000 + 60e3
            )
        )
        sagemaker.stop_training_job(TrainingJobName="stopped")
        job = wait_until(sagemaker, "stopped")
        row = ledger(running)["stopped"]
    assert statuses(job)[-3:] == ["Stopping", "Uploading", "Stopped"]
    stopped_at = job["SecondaryStatusTransitions"][-3]["StartTime"]
    trained = (stopped_at - job["SecondaryStatusTransitions"][2]["StartTime"]).total_seconds()
    kinds = [json.loads(line)["kind"] for line in next(iter(logged_files(aws, "stopped").values()))]
    assert kinds == ["environment", "phase", *["step"] * int((trained - 10 + 0.001) / 2)]
    assert (
        row["billed_seconds"]
        == job["BillableTimeInSeconds"]
        == pytest.approx(3 + trained + 8 + 2, abs=1)
    )


def test_a_restart_in_the_middle_loses_and_repeats_nothing(aws: AwsDouble, tmp_path: Path) -> None:
    names = [f"through-{number:02d}" for number in range(20)]
    slow = ("--speed-up", "20", "--jump-when-quiet-seconds", "1e9")
    with replaying(tmp_path, aws, *slow, duplicated_event_fraction=0.5) as running:
        sagemaker = client("sagemaker", running.endpoint)
        for name in names:
            sagemaker.create_training_job(**simulated_request(name))
        wait_until(sagemaker, names[-1], frozenset({"Training"}))
        running.process.kill()
        running.process.join()
    with replaying(tmp_path, aws) as running:
        assert running.administer("/_local/faults")["duplicated_event_fraction"] == 0.5
        sagemaker = client("sagemaker", running.endpoint)
        ended = [wait_until(sagemaker, name) for name in names]
        rows = ledger(running)
    assert {job["BillableTimeInSeconds"] for job in ended} == {PLAIN_BILLED_SECONDS}
    assert {row["billed_seconds"] for row in rows.values()} == {PLAIN_BILLED_SECONDS}
    assert all(len(logged_files(aws, name)) == 4 for name in names)


def test_events_are_lost_and_repeated_as_asked(tmp_path: Path) -> None:
    cases: tuple[tuple[dict[str, Any], int], ...] = (
        ({"lost_event_fraction": 1}, 0),
        ({"duplicated_event_fraction": 1}, 2),
    )
    for faults, count in cases:
        aws = AwsDouble()
        aws.patterns["ends"] = {"detail": {"TrainingJobStatus": ["Completed"]}}
        folder = tmp_path / str(count)
        folder.mkdir()
        with replaying(folder, aws, **faults) as running:
            run_one(running, simulated_request("told"))
            eventually(lambda running=running: running.health()["undelivered_events"] == 0)
        assert len(aws.invocations) == count
        aws.close()


def test_a_late_event_comes_after_its_delay(aws: AwsDouble, tmp_path: Path) -> None:
    with replaying(tmp_path, aws, late_event_fraction=1, late_event_seconds=600) as running:
        run_one(running, simulated_request("late"))
        assert running.health()["undelivered_events"] == 5


def refusal(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value.response["Error"]["Code"])


def impatient(running: RunningService) -> Any:
    return client(
        "sagemaker", running.endpoint, Config(retries={"total_max_attempts": 1, "mode": "standard"})
    )


def test_requests_are_throttled_as_asked(aws: AwsDouble, tmp_path: Path) -> None:
    with replaying(tmp_path, aws, throttling_fraction=1) as running:
        assert refusal(impatient(running).list_training_jobs) == "ThrottlingException"
        running.administer("/_local/faults", {})
        assert impatient(running).list_training_jobs()["TrainingJobSummaries"] == []


def test_unknown_faults_are_refused(aws: AwsDouble, tmp_path: Path) -> None:
    with replaying(tmp_path, aws) as running:
        with pytest.raises(urllib.error.HTTPError) as caught:
            running.administer("/_local/faults", {"gremlins": 1, "seed": "x"})
        message = json.load(caught.value)["message"]
    assert "gremlins" in message
    assert "seed" in message


def test_without_a_grant_accelerators_have_no_quota(aws: AwsDouble, tmp_path: Path) -> None:
    with start_service(tmp_path, aws.endpoint, "--simulate-all") as running:
        assert (
            refusal(impatient(running).create_training_job, **simulated_request("none"))
            == "ResourceLimitExceeded"
        )


def test_a_grant_is_of_instances_and_of_nothing_else(aws: AwsDouble, tmp_path: Path) -> None:
    with start_service(tmp_path, aws.endpoint, "--grant-quotas", "7") as running:
        quotas = client("service-quotas", running.endpoint).get_paginator("list_service_quotas")
        granted = {
            row["QuotaName"]
            for page in quotas.paginate(ServiceCode="sagemaker")
            for row in page["Quotas"]
        }
    assert "ml.p4d.24xlarge for spot training job usage" in granted
    assert "Number of instances across all training jobs" in granted
    assert not {name for name in granted if "run time" in name or "EBS" in name}


def test_the_date_of_an_answer_is_the_simulated_jobs_clock(aws: AwsDouble, tmp_path: Path) -> None:
    with replaying(tmp_path, aws) as running:
        job = run_one(running, simulated_request("dated"))
    asked_at = parsedate_to_datetime(job["ResponseMetadata"]["HTTPHeaders"]["date"])
    assert (asked_at - job["TrainingEndTime"]).total_seconds() >= -1
