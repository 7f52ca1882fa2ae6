"""Jobs that run six times as long as they may: the suite ends at its cap, and their steps until
then count.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.local.chaos_lab import (
    OVERRUNNING_LANE,
    OVERRUNNING_LIMIT_SECONDS,
    ChaosLab,
    suite_document,
)
from tests.local.jobs import eventually
from traindyno.cli.commands.run_commands import NOTHING_MEASURED
from traindyno.core.costs.prices import cost_usd

pytestmark = [pytest.mark.local, pytest.mark.nightly]

# A step of one or two samples takes 10 s: a job that nobody stops outlasts all that one may be
# billed for, 1,200 s.
STEPS = 140
# The suite has six runs; its cap has room for 2.2 jobs of 1,200 s: their limit, 480 s for the
# image, 480 s to end.
CAP_USD = Decimal("0.6893")
# The pace lets a sweep come in time, though each looks only at jobs that are 20 s old by the
# machine's clock.
PACE = ("--speed-up", "10")
SWEEP_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    status: str
    results: list[dict[str, Any]]
    receipt: dict[str, Any]
    spent_usd: Decimal
    jobs: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def overrun(chaos: ChaosLab) -> Overrun:
    chaos.kill_and_restart_sagemaker(*PACE)
    chaos.administer("/_local/faults", {"unheeded_limits": True})
    try:
        return run_over(chaos)
    finally:
        chaos.administer("/_local/faults", {})
        chaos.kill_and_restart_sagemaker()


def run_over(chaos: ChaosLab) -> Overrun:
    document = suite_document((OVERRUNNING_LANE,), 2, OVERRUNNING_LIMIT_SECONDS)
    measurement = {**document["measurement"], "max_steps": STEPS}
    limits = {"max_usd": str(CAP_USD), "max_hours": 4, "max_job_seconds": OVERRUNNING_LIMIT_SECONDS}
    suite = {**document, "measurement": measurement, "limits": limits}
    chaos.start(chaos.lab.write_suite("overrun", suite), "overrun")

    def has_ended() -> bool:
        chaos.invoke("ReconcileRuns", b"{}")
        return chaos.execution_status("overrun") != "RUNNING"

    eventually(has_ended, 240, SWEEP_SECONDS)
    table = chaos.lab.client("dynamodb")
    row = table.get_item(
        TableName=chaos.lab.deployment().table,
        Key={"pk": {"S": "execution#overrun"}, "sk": {"S": "suite"}},
    )
    report = chaos.lab.traindyno("report", "overrun", "--local", "--format", "json")
    assert (report.status, report.errors.splitlines()[-1]) == (
        NOTHING_MEASURED,
        "no run of 6 was measured",
    )
    return Overrun(
        status=chaos.execution_status("overrun"),
        results=report.json()["results"],
        receipt=chaos.document("report", "overrun", "--receipt")["receipt"],
        spent_usd=Decimal(row["Item"]["spent_usd"]["N"]),
        jobs={
            name: job
            for name, job in chaos.ledger().items()
            if job["instance_type"] == OVERRUNNING_LANE
        },
    )


def test_a_begun_run_times_out_and_one_without_money_ends_for_its_cost(
    overrun: Overrun,
) -> None:
    """The sweep looks within the two minutes that a script has after its limit."""
    assert overrun.status == "SUCCEEDED"
    outcomes = [result["outcome"] for result in overrun.results]
    assert outcomes == [
        "timed_out" if result["attempts"] else "cost_stopped" for result in overrun.results
    ]
    assert {job["status"] for job in overrun.jobs.values()} == {"Stopped"}
    assert 2 <= len(overrun.jobs) < 6


def test_the_payment_is_within_the_cap(overrun: Overrun) -> None:
    price = Decimal(next(line["usd_per_instance_hour"] for line in overrun.receipt["lines"]))
    paid = round(cost_usd(sum(job["billed_seconds"] for job in overrun.jobs.values()), 1, price), 9)
    assert cost_usd(OVERRUNNING_LIMIT_SECONDS, 1, price) < paid <= CAP_USD
    assert round(sum(Decimal(line["exact_usd"]) for line in overrun.receipt["lines"]), 9) == paid
    # Each job's cost is rounded up to a millionth of a dollar before it is added.
    assert paid <= overrun.spent_usd <= paid + len(overrun.jobs) * Decimal("0.000001")


def test_the_log_of_a_stopped_job_is_its_runs_result(overrun: Overrun) -> None:
    stopped = [result for result in overrun.results if result["attempts"]]
    assert len(stopped) == len(overrun.jobs)
    for result in stopped:
        throughput = result["measured"]["throughput"]
        # a step of one or two samples takes 10 s
        samples_per_second = result["run"]["cell"]["settings"]["batch_size_per_device"] / 10
        assert throughput["samples_per_second"] == pytest.approx(samples_per_second, rel=0.05)
        assert 3 <= throughput["steps"] < STEPS
        assert result["message"].startswith(
            "stopped by the lab: timed_out; it ended at least step "
        )
    assert all(
        "its worst case is" in result["message"]
        for result in overrun.results
        if not result["attempts"]
    )
