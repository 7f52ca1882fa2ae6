"""SageMaker's limits on requests per second hold in the jobs' virtual time while many runs start at once."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.local.chaos_lab import PACED_LANES, SIMULATED_WORKLOAD, ChaosLab, until

pytestmark = [pytest.mark.local, pytest.mark.nightly]

# Virtual time passes as the machine's does: functions that are late on a busy machine are as late in virtual time. A
# function may come a second late here before its request meets the limit of one a second.
SECONDS_BETWEEN_STARTS = "2"
RATES = ("--rates", "virtual", "--speed-up", "1")
TRIALS, CELLS_PER_LANE = 2, 2
RUNS = len(PACED_LANES) * TRIALS * CELLS_PER_LANE


@dataclass(frozen=True, slots=True, kw_only=True)
class Paced:
    """``requests`` are counted by operation, by the service."""

    status: str
    outcomes: list[str]
    requests: dict[str, dict[str, int]]
    created_at: list[float]


def suite_document() -> dict[str, Any]:
    return {
        "goal": "fastest",
        "search": "grid",
        "workload": SIMULATED_WORKLOAD,
        "training": {"strategy": "ddp", "precision": "bf16"},
        "baseline": {"instance": PACED_LANES[0]},
        "matrix": {
            "instance": list(PACED_LANES),
            "batch_size_per_device": list(range(1, CELLS_PER_LANE + 1)),
        },
        "measurement": {"trials": TRIALS, "max_steps": 10, "jobs": "separate"},
        "limits": {"max_usd": 100_000, "max_hours": 100, "max_job_seconds": 600},
    }


@pytest.fixture(scope="module")
def paced(chaos: ChaosLab) -> Paced:
    chaos.administer("/_local/faults", {})
    chaos.kill_and_restart_sagemaker(*RATES)
    try:
        with chaos.changed_environment("SubmitRun", SECONDS_BETWEEN_STARTS=SECONDS_BETWEEN_STARTS):
            chaos.start(chaos.lab.write_suite("paced", suite_document()), "paced")
            until(lambda: chaos.execution_status("paced") != "RUNNING", 180)
        return Paced(
            status=chaos.execution_status("paced"),
            outcomes=[result["outcome"] for result in chaos.document("report", "paced")["results"]],
            requests=chaos.administer("/_local/requests"),
            created_at=sorted(
                row["created_at"] for row in chaos.ledger().values() if row["instance_type"] in PACED_LANES
            ),
        )
    finally:
        chaos.kill_and_restart_sagemaker()


def test_no_run_is_lost(paced: Paced) -> None:
    assert (paced.status, paced.outcomes) == ("SUCCEEDED", ["completed"] * RUNS)


def test_jobs_are_created_at_less_than_one_a_second_with_hardly_a_request_too_many(paced: Paced) -> None:
    assert len(paced.created_at) == RUNS
    assert (RUNS - 1) / (paced.created_at[-1] - paced.created_at[0]) < 1
    created = paced.requests["CreateTrainingJob"]
    assert created["requests"] - created["refused"] == RUNS
    assert created["refused"] <= RUNS // 2


def test_jobs_are_described_at_less_than_five_a_second(paced: Paced) -> None:
    described = paced.requests["DescribeTrainingJob"]
    assert RUNS <= described["requests"] <= 2 * RUNS
    assert (described["refused"], described["most_in_a_second"] <= 5) == (0, True)
