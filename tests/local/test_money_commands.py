"""The commands about money in the local cloud: plan, quotas, receipt, reprice, compare and stop."""

from decimal import Decimal
from typing import Any

import pytest

from tests.local.local_lab import LocalLab, script_suite
from traindyno.core.measurement.run_result import parse_run_result
from traindyno.core.verdict.cell_runs import is_measured

pytestmark = pytest.mark.local

LIMITS = {"max_usd": 1, "max_hours": 1, "max_job_seconds": 30}
SCRIPT = """
import sys, time
from traindyno.callbacks import step_log
delay = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--delay_milliseconds"]
for number in range(30):
    with step_log.step(samples=10) as step:
        time.sleep(float(delay) / 1000)
"""


def suite_of(
    lab: LocalLab, delays: list[int], *, jobs: str = "separate", **workload: Any
) -> dict[str, Any]:
    return script_suite(
        lab.write_script("money", SCRIPT),
        {"hyperparameters.delay_milliseconds": delays},
        goal="cheapest",
        workload={"examples": 1_000_000, **workload},
        measurement={"trials": 2, "jobs": jobs},
        limits=LIMITS,
    )


@pytest.fixture(scope="module")
def spent(lab: LocalLab) -> dict[str, Any]:
    report: dict[str, Any] = lab.run_suite("spent", suite_of(lab, [5, 40])).json()
    return report


def test_the_plan_reads_the_local_price_and_shares_the_machine(lab: LocalLab) -> None:
    path = lab.write_suite("planned", suite_of(lab, [5, 40]))
    answer = lab.succeed("plan", str(path), "--local", "--format", "json")
    planned = answer.json()
    (lane,) = planned["lanes"]
    assert (planned["run_count"], lane["concurrency"], lane["waves"]) == (4, 1, 4)
    # 4 runs of 30 s at the nominal $0.10/h, with the time that a job takes to end
    assert (
        Decimal(planned["one_attempt_usd"])
        == Decimal(4 * (30 + 120 + 300 + 60)) * Decimal("0.1") / 3600
    )


def test_the_second_plan_expects_the_bill_of_the_first_execution(
    lab: LocalLab, spent: dict[str, Any]
) -> None:
    before = lab.write_suite("planned-before", suite_of(lab, [5, 40], examples=999))
    assert (
        "no run of these cells has been measured yet"
        in lab.traindyno("plan", str(before), "--local").output
    )
    path = lab.write_suite("planned-again", {**suite_of(lab, [5, 40]), "goal": "fastest"})
    expected = lab.traindyno("plan", str(path), "--local", "--format", "json").json()["expected"]
    assert (expected["past_runs"], expected["known_cells"], expected["is_simulated"]) == (
        4,
        2,
        False,
    )
    billed = sum(Decimal(line["exact_usd"]) for line in lab.receipt("spent")["receipt"]["lines"])
    assert abs(Decimal(expected["usd"]) - billed) < Decimal("1e-9")
    shown = lab.traindyno("plan", str(path), "--local").output
    assert "expected, from 4 earlier runs of these cells" in shown


def test_the_receipt_equals_the_bill_of_the_service(lab: LocalLab, spent: dict[str, Any]) -> None:
    receipt = lab.receipt("spent")
    lines = receipt["receipt"]["lines"]
    assert receipt["is_final"]
    assert [line["outcome"] for line in lines] == ["completed"] * 4
    billed = {line["job_name"]: Decimal(line["billable_seconds"]) for line in lines}
    assert billed == lab.billed_seconds("-spent-")
    total = sum(Decimal(line["usd"]) for line in lines)
    assert total == Decimal(receipt["receipt"]["total_usd"])


def test_repricing_changes_every_cost_and_runs_nothing(
    lab: LocalLab, spent: dict[str, Any]
) -> None:
    (lab.folder / "dear.yaml").write_text(
        "region: here\nas_of: 2026-11-21\nprices: {local.cpu: 0.25}\n"
    )
    answer = lab.succeed("reprice", "spent", "--local", "--prices", "dear.yaml", "--format", "json")
    document = answer.json()
    before, after = (
        {row["cell_id"]: row["usd"]["mean"] for row in document[side]["rows"] if row["usd"]}
        for side in ("before", "after")
    )
    # Every cell that measured a rate has a cost: all its jobs were billed (see the receipt).
    measured = {
        result.run.cell.cell_id
        for result in map(parse_run_result, spent["results"])
        if is_measured(result)
    }
    assert set(before) == measured
    assert measured
    # $0.25 instead of $0.10 per hour
    assert after == {cell_id: pytest.approx(usd * 2.5) for cell_id, usd in before.items()}
    assert not document["is_flipped"]
    nowhere = lab.traindyno("reprice", "spent", "--local", "--region", "eu-north-1")
    assert nowhere.status == 1
    assert "eu-north-1: no price of local.cpu was found" in nowhere.errors


def test_two_executions_are_compared_cell_by_cell_and_shares_add_up_to_each_bill(
    lab: LocalLab, spent: dict[str, Any]
) -> None:
    lab.run_suite("later", suite_of(lab, [40, 60], jobs="shared"))
    lines = lab.receipt("later")["receipt"]["lines"]
    shares: dict[str, Decimal] = {}
    for line in lines:
        shares[line["job_name"]] = shares.get(line["job_name"], Decimal(0)) + Decimal(
            line["billable_seconds"]
        )
    assert (len(lines), len(shares)) == (4, 2)
    assert shares == lab.billed_seconds("-later-")
    answer = lab.succeed("compare", "spent", "later", "--local", "--format", "json")
    compared = answer.json()
    (cell,) = compared["cells"]
    assert cell["label"] == "delay_milliseconds 40"
    interval = cell["rate"]["interval"]
    assert interval["low"] <= cell["rate"]["ratio"] <= interval["high"]
    assert (compared["only_first"], compared["only_second"]) == (
        ["delay_milliseconds 5"],
        ["delay_milliseconds 60"],
    )


@pytest.fixture(scope="module")
def stopped(lab: LocalLab) -> dict[str, Any]:
    """The receipt while the suite ran, and the output of the command that stopped it."""
    suite = {
        **suite_of(lab, [10_000], examples=2_000_000),
        "limits": {**LIMITS, "max_job_seconds": 300},
    }
    path = lab.write_suite("endless-money", suite)
    lab.succeed("run", str(path), "--local", "--name", "stopped", "--no-wait")
    receipts = [lab.receipt("stopped")]
    while not receipts[-1]["running_jobs"]:
        assert len(receipts) < 100
        receipts.append(lab.receipt("stopped"))
    answer = lab.succeed("stop", "stopped", "--local")
    return {"running": receipts[-1], "said": answer.errors}


def test_the_receipt_of_a_running_execution_is_not_final(stopped: dict[str, Any]) -> None:
    running = stopped["running"]
    assert not running["is_final"]
    assert running["receipt"]["total_usd"] is None
    assert "running" in {line["outcome"] for line in running["receipt"]["lines"]}


def test_stopping_says_the_amount_spent(lab: LocalLab, stopped: dict[str, Any]) -> None:
    assert "for 1 training job\n" in stopped["said"]
    assert "traindyno report stopped --receipt --local" in stopped["said"]
    final = lab.receipt("stopped")
    assert final["is_final"]
    (line,) = final["receipt"]["lines"]
    assert line["outcome"] == "stopped_by_user"
    assert {line["job_name"]: Decimal(line["billable_seconds"])} == lab.billed_seconds(
        "-endless-money-"
    )
