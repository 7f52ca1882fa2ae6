"""A suite whose runs share jobs, from the command line to the report, with a host that is
killed.
"""

import math
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.local.local_lab import LocalLab, script_suite
from traindyno.core.costs.projection import paid_usd
from traindyno.core.jobs.journal_format import ENDED
from traindyno.core.lab_names import DEFAULT_LAB, jobs_prefix
from traindyno.core.measurement.run_result import parse_run_result
from traindyno.core.s3_keys import RUNS_PREFIX

pytestmark = pytest.mark.local

EXECUTION = "shared-1"
STEPS = 30
LONGEST_SECONDS = 500
# After the first run, those of the first attempt of the first job wait for its death.
SCRIPT = f"""
import os, pathlib, sys, time
from traindyno.callbacks import step_log
does = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--does"]
for number in range({STEPS}):
    with step_log.step(samples=10) as step:
        time.sleep(0.02 if does == "slow" else 0.01)
        step.loss = 1 / (number + 1)
ended = pathlib.Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"]).parents[1].glob("*/{ENDED}")
if os.environ["TRAINING_JOB_NAME"].endswith("-t1-a1") and any(ended):
    time.sleep(600)
if does == "fail":
    raise ValueError("the third batch is broken")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The report of a suite in shared jobs.

    ``billed`` maps a job's name to the seconds that the service counted; ``killed`` is the job that
    lost its host.
    """

    report: dict[str, Any]
    billed: dict[str, Decimal]
    killed: str

    def results(self) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.report["results"]
        return results


@pytest.fixture(scope="module")
def told(lab: LocalLab) -> Told:
    """Two blocks of three cells. The first job is killed once a run of it has ended."""
    suite = shared_suite(lab, "local.cpu", trials=2)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(lab.run_suite, "shared", suite, EXECUTION)
        killed = kill_once_a_run_has_ended(lab, running)
    return Told(report=running.result().json(), billed=billed_seconds(lab, "shared"), killed=killed)


def shared_suite(lab: LocalLab, instance: str, *, trials: int) -> dict[str, Any]:
    return script_suite(
        lab.write_script("shared_script", SCRIPT),
        {"hyperparameters.does": ["fast", "slow", "fail"]},
        training={"instance": instance, "strategy": "single"},
        measurement={"trials": trials, "jobs": "shared"},
        limits={"max_usd": 1, "max_hours": 1, "max_job_seconds": 900},
    )


def billed_seconds(lab: LocalLab, suite_name: str) -> dict[str, Decimal]:
    return lab.billed_seconds(f"{jobs_prefix(DEFAULT_LAB)}{suite_name}-")


def kill_once_a_run_has_ended(lab: LocalLab, running: Any) -> str:
    deadline = time.monotonic() + LONGEST_SECONDS
    while not (ended := ends_of(lab)):
        assert time.monotonic() < deadline, "no run has ended"
        assert not running.done(), running.result().errors
        time.sleep(0.1)
    job_name = ended[0].split("/")[-2]
    lab.administer("/_local/kill", {"TrainingJobName": job_name})
    return job_name


def ends_of(lab: LocalLab) -> list[str]:
    listed = lab.client("s3").list_objects_v2(
        Bucket=lab.deployment().bucket, Prefix=f"{RUNS_PREFIX}{EXECUTION}/"
    )
    return [
        listed_object["Key"]
        for listed_object in listed.get("Contents", ())
        if f"/{ENDED}/" in listed_object["Key"]
    ]


def test_each_run_has_its_own_end_and_a_failing_run_fails_alone(told: Told) -> None:
    outcomes = Counter(
        (result["run"]["cell"]["hyperparameters"]["does"], result["outcome"])
        for result in told.results()
    )
    assert outcomes == {
        ("fast", "completed"): 2,
        ("slow", "completed"): 2,
        ("fail", "user_code_error"): 2,
    }
    failed = [result for result in told.results() if result["outcome"] == "user_code_error"]
    assert all(
        "ValueError: the third batch is broken" in result["attempts"][-1]["message"]
        for result in failed
    )


def test_runs_of_a_block_share_a_job_and_a_killed_job_goes_on_with_the_rest(
    told: Told,
) -> None:
    of_block: dict[str, set[str]] = {}
    for result in told.results():
        of_block.setdefault(result["run"]["block"], set()).add(result["run"]["job_id"])
    assert sorted(map(len, of_block.values())) == [1, 1]
    assert len(told.billed) == 3
    repeated = [result for result in told.results() if len(result["attempts"]) > 1]
    assert [result["attempts"][0]["job_name"] for result in repeated] == [told.killed]
    names = {attempt["job_name"] for result in told.results() for attempt in result["attempts"]}
    assert names == told.billed.keys()


def test_the_shares_of_the_runs_add_up_to_the_bill_of_each_job(told: Told) -> None:
    shares: dict[str, list[float]] = {}
    for result in told.results():
        for attempt in result["attempts"]:
            shares.setdefault(attempt["job_name"], []).append(attempt["billable_seconds"])
    assert {name: round(math.fsum(parts) * 1000) for name, parts in shares.items()} == {
        name: seconds * 1000 for name, seconds in told.billed.items()
    }
    price = Decimal(str(told.results()[0]["price"]["usd_per_instance_hour"]))
    paid = sum(told.billed.values()) * price / 3600
    spent = sum(paid_usd(parse_run_result(result)) or Decimal(0) for result in told.results())
    assert spent == pytest.approx(paid, abs=Decimal("0.00001"))


def test_simulated_runs_share_a_job_with_one_billed_start(lab: LocalLab) -> None:
    suite = shared_suite(lab, "ml.g6.xlarge", trials=1)
    lab.grant_quotas(1, "ml.g6.xlarge")
    results = lab.run_suite("simulated", suite, "shared-2").json()["results"]
    (billed,) = billed_seconds(lab, "simulated").values()
    assert [result["outcome"] for result in results] == ["completed"] * 3
    assert (
        round(math.fsum(result["attempts"][0]["billable_seconds"] for result in results) * 1000)
        == billed * 1000
    )
