"""Many runs while capacity, requests and events fail, the service is killed, and another execution is aborted.

``test_chaos_seeds.py`` has fewer runs and more checks under the same faults.
"""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.local.chaos_lab import SIMULATED_WORKLOAD, SLOW_LANE, ChaosLab, until

pytestmark = [
    pytest.mark.local,
    pytest.mark.timeout(1500),
    pytest.mark.nightly,
]
RUNS = 1000
LANES = ("ml.g4dn.xlarge", "ml.g5.2xlarge", "ml.g6.xlarge")
TRIALS = 3
CELLS_PER_LANE = -(-RUNS // (len(LANES) * TRIALS))
FAULTS = {
    "seed": 7,
    "capacity_error_fraction": 0.2,
    "internal_error_fraction": 0.03,
    "out_of_memory_fraction": 0.05,
    "throttling_fraction": 0.1,
    "duplicated_event_fraction": 0.2,
    "late_event_fraction": 0.2,
    "late_event_seconds": 1.5,
    "lost_event_fraction": 0.02,
}
ENDED = {"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}


def suite_document(instances: tuple[str, ...], cells: int, max_job_seconds: int) -> dict[str, Any]:
    return {
        "goal": "fastest",
        "search": "grid",
        "workload": SIMULATED_WORKLOAD,
        "training": {"strategy": "ddp", "precision": "bf16", "learning_rate": {"base": 3.0e-4}},
        "baseline": {"instance": instances[0]},
        "matrix": {"instance": list(instances), "batch_size_per_device": list(range(1, cells + 1))},
        "measurement": {"trials": TRIALS, "max_steps": 10, "jobs": "separate"},
        "limits": {"max_usd": 1_000_000, "max_hours": 1000, "max_job_seconds": max_job_seconds, "max_attempts": 12},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    results: list[dict[str, Any]]
    receipt: dict[str, Any]
    ledger: dict[str, dict[str, Any]]
    orphans_before_abort: int
    execution_status: str
    job_counts: dict[str, int]


@pytest.fixture(scope="module")
def aftermath(chaos: ChaosLab) -> Aftermath:
    chaos.administer("/_local/faults", FAULTS)
    return wreak(chaos)


def wreak(chaos: ChaosLab) -> Aftermath:
    main = chaos.lab.write_suite("chaos", suite_document(LANES, CELLS_PER_LANE, 3600))
    doomed = chaos.lab.write_suite("doomed", suite_document((SLOW_LANE,), 4, 400_000))
    chaos.start(main, "main")
    until(lambda: counted(chaos, *LANES, has_ended=True) > RUNS // 3, 600)
    chaos.kill_and_restart_sagemaker()
    chaos.start(doomed, "doomed")
    until(lambda: counted(chaos, SLOW_LANE, has_ended=False) > 0, 120)
    orphans = counted(chaos, SLOW_LANE, has_ended=False)
    chaos.lab.client("stepfunctions").stop_execution(executionArn=chaos.execution_arn("doomed"))
    until(lambda: chaos.execution_status("main") in ENDED, 1200)
    until(lambda: not any(row["has_ended"] is False for row in chaos.ledger().values()), 180)
    return Aftermath(
        results=chaos.document("report", "main")["results"],
        receipt=chaos.document("report", "main", "--receipt")["receipt"],
        ledger=chaos.ledger(),
        orphans_before_abort=orphans,
        execution_status=chaos.execution_status("main"),
        job_counts=chaos.administer("/health")["jobs"],
    )


def counted(chaos: ChaosLab, *instances: str, has_ended: bool) -> int:
    rows = chaos.ledger().values()
    return sum(row["instance_type"] in instances and row["has_ended"] is has_ended for row in rows)


def jobs_of_main(aftermath: Aftermath) -> list[dict[str, Any]]:
    return [row for row in aftermath.ledger.values() if row["instance_type"] in LANES]


def test_every_run_ends_in_one_result_with_an_outcome_that_was_to_be_expected(aftermath: Aftermath) -> None:
    assert aftermath.execution_status == "SUCCEEDED"
    run_ids = [result["run"]["run_id"] for result in aftermath.results]
    assert len(run_ids) == len(set(run_ids)) == len(LANES) * TRIALS * CELLS_PER_LANE
    assert {result["outcome"] for result in aftermath.results} <= {"completed", "out_of_memory"}
    outcomes = Counter(result["outcome"] for result in aftermath.results)
    assert outcomes["completed"] > 0.8 * len(run_ids)


def test_every_job_belongs_to_one_run_and_at_most_one_of_a_run_completed(aftermath: Aftermath) -> None:
    attempts = [attempt["job_name"] for result in aftermath.results for attempt in result["attempts"]]
    assert Counter(attempts) == Counter(row["job_name"] for row in jobs_of_main(aftermath))
    for result in aftermath.results:
        statuses = [aftermath.ledger[attempt["job_name"]]["status"] for attempt in result["attempts"]]
        assert statuses[:-1] == ["Failed"] * (len(statuses) - 1)
        assert statuses[-1] == ("Completed" if result["outcome"] == "completed" else "Failed")


def test_the_receipt_adds_up_to_the_engines_own_ledger(aftermath: Aftermath) -> None:
    for result in aftermath.results:
        for attempt in result["attempts"]:
            billed = aftermath.ledger[attempt["job_name"]]["billed_seconds"]
            assert attempt["billable_seconds"] == billed, attempt
    receipt_seconds = sum(Decimal(str(line["billable_seconds"] or 0)) for line in aftermath.receipt["lines"])
    assert receipt_seconds == sum(row["billed_seconds"] for row in jobs_of_main(aftermath))


def test_no_job_of_the_aborted_execution_ran_on(aftermath: Aftermath) -> None:
    assert aftermath.orphans_before_abort > 0
    slow = [row for row in aftermath.ledger.values() if row["instance_type"] == SLOW_LANE]
    assert {row["status"] for row in slow} <= {"Stopped", "Failed"}
    assert set(aftermath.job_counts) <= {"Completed", "Failed", "Stopped"}


def test_every_result_says_that_it_is_simulated(aftermath: Aftermath) -> None:
    completed = [result for result in aftermath.results if result["outcome"] == "completed"]
    assert all(result["is_simulated"] for result in completed)
