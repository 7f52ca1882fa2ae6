"""Suites from the command line to the verdict, in a local cloud: real deployment, real jobs, real
failures.
"""

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.transitions import count_transitions
from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab, script_suite

pytestmark = pytest.mark.local

WORKING_SCRIPT = """
import sys, time
from traindyno.callbacks import step_log
rate = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--delay_milliseconds"]
for number in range(40):
    with step_log.step(samples=10) as step:
        time.sleep(float(rate) / 1000)
        step.loss = 1 / (number + 1)
print("done")
"""
FAILING_SCRIPT = """
import os, sys, time
from traindyno.callbacks import step_log
mode = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--mode"]
print("the mode is", mode, flush=True)
if mode == "raises":
    with step_log.step(samples=1):
        raise ValueError("the tea is cold")
if mode == "exits":
    os._exit(7)
if mode == "hangs":
    time.sleep(600)
if mode == "fine":
    for _ in range(30):
        with step_log.step(samples=1):
            time.sleep(0.002)
"""
INVALID = """name: Invalid Name
goal: cheapest
workload: {task: causal-lm, exampels: 3}
training: {instance: ml.p9.huge}
matrix:
  instance_count: [1, four]
  strategy: []
limits: {max_usd: 0, max_hours: 1, max_job_seconds: 60}
"""


@pytest.fixture(scope="module")
def two_speeds(lab: LocalLab) -> dict[str, Any]:
    """The report of a suite whose slower cell sleeps four times as long in each step."""
    source = lab.write_script("speeds", WORKING_SCRIPT)
    (lab.folder / source / ".env").write_text("KEY=private")
    matrix = {"hyperparameters.delay_milliseconds": [5, 20]}
    baseline = {"hyperparameters.delay_milliseconds": 20}
    workload = {"examples": 1_000_000}  # with so much work the start of a job doesn't matter
    answer = lab.run_suite(
        "speeds", script_suite(source, matrix, baseline=baseline, workload=workload)
    )
    assert "travels; left out: 1 named like a credential (.env)" in answer.errors
    report: dict[str, Any] = answer.json()
    return report


def test_a_suite_runs_to_a_verdict_borne_out_by_its_steps(two_speeds: dict[str, Any]) -> None:
    verdict = two_speeds["verdict"]
    labels = {cell["cell_id"]: cell["label"] for cell in two_speeds["cells"]}
    assert labels[verdict["recommended"]] == "delay_milliseconds 5"
    assert verdict["finding"] == "recommended"
    assert [result["outcome"] for result in two_speeds["results"]] == ["completed"] * 4
    for result in two_speeds["results"]:
        delay = result["run"]["cell"]["hyperparameters"]["delay_milliseconds"]
        rate = result["measured"]["throughput"]["samples_per_second"]
        assert 0.3 * 10_000 / delay < rate < 10_000 / delay


def test_the_report_is_one_file_with_its_cells_names(
    lab: LocalLab, two_speeds: dict[str, Any]
) -> None:
    answer = lab.succeed("report", "speeds", "--local", "--output", "fetched")
    page = (lab.folder / "fetched" / "speeds.html").read_text()
    assert "delay_milliseconds 5" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "delay_milliseconds 5" in answer.output


def test_a_run_costs_at_most_eight_transitions(lab: LocalLab, two_speeds: dict[str, Any]) -> None:
    arn = f"{lab.deployment().state_machine_arn.replace(':stateMachine:', ':execution:')}:speeds"
    counts = count_transitions(lab.client("stepfunctions"), arn)
    runs = len(two_speeds["results"])
    jobs = len(
        {attempt["job_name"] for result in two_speeds["results"] for attempt in result["attempts"]}
    )
    assert jobs == 2  # one for each trial
    # the job's own task, and one that records its runs
    assert counts["Task of a run"] >= 2 * jobs
    assert counts.total() / runs <= 8


def test_every_way_to_fail_is_an_outcome_and_the_other_runs_go_on(lab: LocalLab) -> None:
    source = lab.write_script("failures", FAILING_SCRIPT)
    matrix = {"hyperparameters.mode": ["fine", "raises", "exits", "hangs", "silent"]}
    limits = {"max_usd": 1, "max_hours": 1, "max_job_seconds": 300, "max_run_seconds": 10}
    answer = lab.run_suite(
        "failures", script_suite(source, matrix, limits=limits, measurement={"trials": 1})
    )
    results = {
        result["run"]["cell"]["hyperparameters"]["mode"]: result
        for result in answer.json()["results"]
    }
    assert {mode: result["outcome"] for mode, result in results.items()} == {
        "fine": "completed",
        "raises": "user_code_error",
        "exits": "user_code_error",
        "hangs": "timed_out",
        "silent": "user_code_error",
    }
    assert "the tea is cold" in json.dumps(results["raises"])
    assert "the mode is exits" in "\n".join(results["exits"]["log_tail"])
    assert "the mode is hangs" in "\n".join(results["hangs"]["log_tail"])
    page = (lab.folder / "reports" / "failures.html").read_text()
    assert "the tea is cold" in page


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (INVALID, ((3, "exampels"), (6, "matrix.instance_count[1]"))),
        (
            INVALID.replace("exampels", "examples").replace("four", "4"),
            ((4, "ml.p9.huge"), (7, "matrix.strategy"), (8, "max_usd")),
        ),
    ],
    ids=["form", "content"],
)
def test_a_wrong_suite_is_refused_with_every_problem_before_anything_starts(
    lab: LocalLab, tmp_path: Path, text: str, problems: tuple[tuple[int, str], ...]
) -> None:
    path = tmp_path / "invalid.yaml"
    path.write_text(text)
    answer = lab.traindyno("run", str(path), "--local", "--name", "invalid")
    assert answer.status == 2
    for line, problem in problems:
        assert any(
            f"invalid.yaml:{line}: " in said and problem in said
            for said in answer.errors.splitlines()
        ), problem
    assert "invalid" not in [
        row["execution_id"] for row in lab.traindyno("list", "--local", "--format", "json").json()
    ]


def test_the_state_machine_refuses_the_same_suite_with_the_same_text(
    lab: LocalLab, tmp_path: Path
) -> None:
    limits = {
        "max_usd": 0,
        "max_hours": 1,
        "max_job_seconds": 60,
    }  # what is missing, the command line completes
    document = {"name": "x", "goal": "cheap", "workload": {"task": "script"}, "limits": limits}
    path = tmp_path / "same.json"
    path.write_text(json.dumps(document))
    said = [
        line.split(": ", 1)[1]
        for line in lab.traindyno("run", str(path), "--local").errors.splitlines()
    ]
    stepfunctions = lab.client("stepfunctions")
    machine = lab.deployment().state_machine_arn
    arn = stepfunctions.start_execution(
        stateMachineArn=machine, name="same", input=json.dumps(document)
    )["executionArn"]
    eventually(lambda: stepfunctions.describe_execution(executionArn=arn)["status"] == "FAILED")
    execution = stepfunctions.describe_execution(executionArn=arn)
    assert execution["error"] == "SuiteInvalid"
    assert execution["cause"].splitlines() == said


def test_stopping_an_execution_stops_its_jobs_and_their_processes(lab: LocalLab) -> None:
    source = lab.write_script("endless", FAILING_SCRIPT)
    suite = script_suite(source, {"hyperparameters.mode": ["hangs"]})
    path = lab.write_suite("endless", suite)
    started = lab.traindyno("run", str(path), "--local", "--name", "endless", "--no-wait")
    assert (
        "no model to deploy: the inference handler can't serve models of task script"
        in started.errors
    )
    assert started.status == 0, started.errors
    sagemaker = lab.client("sagemaker")
    eventually(lambda: _training(sagemaker, "endless"))
    lab.succeed("stop", "endless", "--local")
    jobs = sagemaker.list_training_jobs(NameContains="endless")["TrainingJobSummaries"]
    assert [job["TrainingJobStatus"] for job in jobs] == ["Stopped"]
    assert _processes_below(lab.folder) == []


def _training(sagemaker: Any, name: str) -> list[str]:
    jobs = sagemaker.list_training_jobs(NameContains=name)["TrainingJobSummaries"]
    described = [
        sagemaker.describe_training_job(TrainingJobName=job["TrainingJobName"]) for job in jobs
    ]
    return [job["TrainingJobName"] for job in described if job["SecondaryStatus"] == "Training"]


def _processes_below(folder: Path) -> list[str]:
    """The jobs' processes that work there: another lab's tests may run on this machine."""
    infos = [process.info for process in psutil.process_iter(["cmdline", "cwd"])]
    return [
        " ".join(info["cmdline"])
        for info in infos
        if (info["cwd"] or "").startswith(f"{folder}/") and "--mode" in info["cmdline"]
    ]
