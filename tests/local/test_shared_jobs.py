"""A suite whose runs share jobs, from the command line to the report, with a host that is killed."""

import math
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.local.forked_programs import Answer
from tests.local.local_lab import LocalLab
from traindyno.core.costs.projection import paid_usd
from traindyno.core.jobs.journal_format import ENDED
from traindyno.core.measurement.run_result import parse_run_result
from traindyno.core.s3_keys import RUNS_PREFIX

pytestmark = pytest.mark.local

EXECUTION, STEPS = "shared-1", 30
LONGEST_SECONDS = 500
SCRIPT = f"""
import sys, time
from traindyno.callbacks import step_log
does = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--does"]
for number in range({STEPS}):
    with step_log.step(samples=10) as step:
        time.sleep(0.02 if does == "slow" else 0.01)
        step.loss = 1 / (number + 1)
if does == "fail":
    raise ValueError("the third batch is broken")
time.sleep(2)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """``billed``: job name → seconds by the service's own count. ``killed``: the job that lost its host."""

    report: dict[str, Any]
    billed: dict[str, int]
    killed: str

    def results(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.report["results"]
        return found


@pytest.fixture(scope="module")
def told(lab: LocalLab) -> Told:
    """Two blocks of three cells. The first job is killed once a run of it has ended."""
    suite = lab.write_suite(
        "shared",
        {
            "goal": "fastest",
            "workload": {
                "task": "script",
                "source": lab.write_script("shared_script", SCRIPT),
                "entry_point": "train.py",
                "examples": 1000,
            },
            "training": {"instance": "local.cpu", "strategy": "single"},
            "matrix": {"hyperparameters.does": ["fast", "slow", "fail"]},
            "measurement": {"trials": 2, "jobs": "shared"},
            "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 300, "max_contended_repeats": 0},
        },
    )
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(lab.traindyno, "run", str(suite), "--local", "--name", EXECUTION, "--format", "json")
        killed = kill_once_a_run_has_ended(lab, running)
        answer: Answer = running.result()
    assert answer.status == 0, answer.errors
    return Told(
        report=answer.json(), billed={name: row["billed_seconds"] for name, row in jobs_of(lab).items()}, killed=killed
    )


def jobs_of(lab: LocalLab) -> dict[str, dict[str, Any]]:
    """The shared jobs of the suite, by the service's ledger."""
    rows = {row["job_name"]: row for row in lab.administer("/_local/ledger")["rows"]}
    return {name: row for name, row in rows.items() if name.startswith("traindyno--shared-")}


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
    listed = lab.client("s3").list_objects_v2(Bucket=lab.deployment().bucket, Prefix=f"{RUNS_PREFIX}{EXECUTION}/")
    return [each["Key"] for each in listed.get("Contents", ()) if f"/{ENDED}/" in each["Key"]]


def test_each_run_has_its_own_end_and_one_that_fails_fails_alone(told: Told) -> None:
    outcomes = Counter(
        (result["run"]["cell"]["hyperparameters"]["does"], result["outcome"]) for result in told.results()
    )
    assert outcomes == {("fast", "completed"): 2, ("slow", "completed"): 2, ("fail", "user_code_error"): 2}
    failed = [result for result in told.results() if result["outcome"] == "user_code_error"]
    assert all("ValueError: the third batch is broken" in result["attempts"][-1]["message"] for result in failed)


def test_runs_of_a_block_share_a_job_and_a_killed_one_goes_on_with_what_was_left(told: Told) -> None:
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
