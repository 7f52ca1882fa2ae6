"""Runs on instances that earlier jobs left: which started warm, and what that cost by the engine's ledger."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.local.chaos_lab import SIMULATED_WORKLOAD, WARM_LANE, ChaosLab, until
from traindyno.core.costs.prices import cost_usd
from traindyno.core.costs.projection import paid_usd
from traindyno.core.measurement.run_result import parse_run_result

pytestmark = [pytest.mark.local, pytest.mark.nightly]

# The lane runs eight jobs at once, so that the first eight find no instances.
CELLS, TRIALS = 6, 2
KEEP_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    results: list[dict[str, Any]]
    receipt: dict[str, Any]
    spending: dict[str, Any]
    jobs: dict[str, dict[str, Any]]


def suite_document() -> dict[str, Any]:
    return {
        "goal": "fastest",
        "search": "grid",
        "workload": SIMULATED_WORKLOAD,
        "training": {"strategy": "ddp", "precision": "bf16", "instance": WARM_LANE},
        "matrix": {"batch_size_per_device": list(range(1, CELLS + 1))},
        "measurement": {"trials": TRIALS, "max_steps": 10},
        "limits": {"max_usd": 1000, "max_hours": 100, "max_job_seconds": 600},
        "warm_pool_seconds": KEEP_SECONDS,
    }


@pytest.fixture(scope="module")
def kept(chaos: ChaosLab) -> Kept:
    chaos.administer("/_local/faults", {})
    chaos.start(chaos.lab.write_suite("kept", suite_document()), "kept")
    until(lambda: chaos.execution_status("kept") != "RUNNING", 180)
    assert chaos.execution_status("kept") == "SUCCEEDED"
    row = chaos.lab.client("dynamodb").get_item(
        TableName=chaos.lab.deployment().table, Key={"pk": {"S": "execution#kept"}, "sk": {"S": "suite"}}
    )
    return Kept(
        results=chaos.document("report", "kept")["results"],
        receipt=chaos.document("report", "kept", "--receipt"),
        spending=row["Item"],
        jobs={name: job for name, job in chaos.ledger().items() if job["instance_type"] == WARM_LANE},
    )


def test_a_run_says_whether_it_started_warm_as_the_engine_knows_it(kept: Kept) -> None:
    started_warm = {
        attempt["job_name"]: attempt["started_warm"] for result in kept.results for attempt in result["attempts"]
    }
    assert started_warm == {name: job["started_warm"] for name, job in kept.jobs.items()}
    assert 0 < sum(started_warm.values()) <= CELLS * TRIALS - 1
    takers = [job["reused_by"] for job in kept.jobs.values() if job["reused_by"]]
    assert sorted(takers) == sorted(name for name, is_warm in started_warm.items() if is_warm)


def test_keeping_instances_counts_in_the_cap_the_report_and_the_receipt(kept: Kept) -> None:
    price = Decimal(next(line["usd_per_instance_hour"] for line in kept.receipt["receipt"]["lines"]))
    seconds = {name: job["billed_seconds"] + job["warm_pool_seconds"] for name, job in kept.jobs.items()}
    paid = round(cost_usd(sum(seconds.values()), 1, price), 9)
    warm_seconds = [job["warm_pool_seconds"] for job in kept.jobs.values()]
    assert sum(warm_seconds) > 0
    assert max(warm_seconds) <= KEEP_SECONDS
    assert kept.receipt["is_final"]
    assert round(sum(Decimal(line["exact_usd"]) for line in kept.receipt["receipt"]["lines"]), 9) == paid
    assert round(sum(paid_usd(parse_run_result(result)) or 0 for result in kept.results), 9) == paid
    spent, exposed = (Decimal(kept.spending[name]["N"]) for name in ("spent_usd", "exposed_usd"))
    # Each amount is rounded up to a millionth of a dollar before it is added.
    assert paid <= spent <= paid + 2 * len(kept.jobs) * Decimal("0.000001")
    assert abs(exposed - spent) <= 2 * len(kept.jobs) * Decimal("0.000001")
    assert "pools" not in kept.spending
