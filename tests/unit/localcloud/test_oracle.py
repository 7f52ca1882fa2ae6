"""The oracle of the chaos tests must see each kind of fault that it is there for."""

import copy
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.local.oracle import Evidence, check_ended, check_finished, find_strays

FIRST = "job-a1"
SECOND = "job-a2"
FAULTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a lost run": lambda evidence: evidence["table"].pop(("execution#main", "run#0a-t1")),
    "a lost result": lambda evidence: evidence["documents"].clear(),
    "another outcome in the result": lambda evidence: evidence["documents"][
        "suites/main/results/0a-t1.json"
    ].update(outcome="out_of_memory"),
    "a job that was started twice": lambda evidence: evidence["ledger"][FIRST].update(
        status="Completed"
    ),
    "a job that was stopped for another": lambda evidence: evidence["ledger"][FIRST].update(
        status="Stopped"
    ),
    "a last job that failed": lambda evidence: evidence["ledger"][SECOND].update(status="Failed"),
    "an attempt without a job": lambda evidence: evidence["ledger"].pop(SECOND),
    "a job that the run's row does not name": lambda evidence: evidence["table"][
        "execution#main", "run#0a-t1"
    ].update(jobs={SECOND}),
    "a second too many in an attempt": lambda evidence: evidence["table"][
        f"job#{FIRST}", "attempt"
    ].update(end={"billable_seconds": Decimal(101)}),
    "a line missing from the receipt": lambda evidence: evidence["receipt"]["lines"].pop(),
    "a second too few in the receipt": lambda evidence: evidence["receipt"]["lines"][0].update(
        billable_seconds="99"
    ),
    "a cent too many": lambda evidence: evidence["receipt"].update(total_usd="0.61"),
    "money that is still reserved": lambda evidence: evidence["table"][
        "execution#main", "suite"
    ].update(exposed_usd=Decimal("0.7")),
    "more than the cap": lambda evidence: evidence["table"]["execution#main", "suite"].update(
        max_usd=Decimal("0.59")
    ),
    "a job that completed, of a run without a result for its cost": lambda evidence: [
        evidence["table"]["execution#main", "run#0a-t1"]["summary"].update(outcome="cost_stopped"),
        evidence["documents"]["suites/main/results/0a-t1.json"].update(outcome="cost_stopped"),
    ],
    "money that was not counted": lambda evidence: evidence["table"][
        "execution#main", "suite"
    ].update(spent_usd=Decimal("0.5"), exposed_usd=Decimal("0.5")),
}


def books() -> dict[str, Any]:
    """One run of two instances: an attempt that failed after 100 s, and one that completed after
    200 s. Another run was refused for the cap.
    """
    owner = json.dumps({"run": {"run_id": "0a-t1"}})
    prices = {"ml.g5.xlarge": {"usd_per_hour": Decimal("3.60")}}
    attempt = {"execution_id": "main", "owner": owner}
    job = {"instance_type": "ml.g5.xlarge", "instance_count": 2, "has_ended": True}
    # 300 s x 2 instances x $3.60 an hour.
    spent = Decimal("0.600000")
    return {
        "ledger": {
            FIRST: {**job, "status": "Failed", "billed_seconds": 100},
            SECOND: {**job, "status": "Completed", "billed_seconds": 200},
        },
        "table": {
            ("execution#main", "suite"): {
                **{"run_count": 2, "prices": prices, "max_usd": Decimal("0.60")},
                **{"spent_usd": spent, "exposed_usd": spent},
            },
            ("execution#main", "run#0b-t1"): {"summary": {"outcome": "cost_stopped"}},
            ("execution#main", "run#0a-t1"): {
                "jobs": {FIRST, SECOND},
                "summary": {"outcome": "completed"},
            },
            (f"job#{FIRST}", "attempt"): {
                **attempt,
                "number": 1,
                "end": {"billable_seconds": Decimal(100)},
            },
            (f"job#{SECOND}", "attempt"): {
                **attempt,
                "number": 2,
                "end": {"billable_seconds": Decimal(200)},
            },
        },
        "documents": {
            "suites/main/results/0a-t1.json": {"outcome": "completed"},
            "suites/main/results/0b-t1.json": {"outcome": "cost_stopped"},
        },
        "receipt": {
            "total_usd": "0.60",
            "lines": [
                {"job_name": FIRST, "billable_seconds": "100"},
                {"job_name": SECOND, "billable_seconds": "200"},
            ],
        },
    }


def problems(change: Callable[[dict[str, Any]], object]) -> list[str]:
    changed = copy.deepcopy(books())
    change(changed)
    receipt = changed.pop("receipt")
    return check_finished(Evidence(**changed), "main", receipt)


def test_agreeing_books_have_no_problem() -> None:
    assert problems(lambda _: None) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_each_kind_of_fault_is_seen(fault: str) -> None:
    assert problems(FAULTS[fault])


def test_a_job_outliving_its_execution_is_seen() -> None:
    changed = books()
    changed.pop("receipt")
    assert check_ended(Evidence(**changed), "main") == []
    changed["ledger"][FIRST]["has_ended"] = False
    changed["table"][f"job#{SECOND}", "attempt"]["open"] = "open"
    assert check_ended(Evidence(**changed), "main") == [
        f"{FIRST}: still runs",
        f"{SECOND}: its attempt is still open",
    ]


def test_a_job_named_by_no_attempt_is_a_stray() -> None:
    changed = books()
    changed.pop("receipt")
    changed["ledger"]["orphan"] = changed["ledger"][FIRST]
    assert find_strays(Evidence(**changed)) == ["orphan"]
