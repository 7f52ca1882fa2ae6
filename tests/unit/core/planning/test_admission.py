"""The caps of money and time."""

from decimal import Decimal

import pytest

from tests.sentences import Snapshot
from traindyno.core.planning.admission import (
    Decision,
    admit_cost,
    admit_time,
    needed_reservation_usd,
)


def usd(text: str) -> Decimal:
    return Decimal(text)


@pytest.mark.parametrize(
    ("exposed", "spent", "decision"),
    [
        ("0", "0", Decision.START),
        ("7", "7", Decision.START),
        ("7.01", "2", Decision.WAIT),
        ("9", "7.01", Decision.REFUSE),
    ],
)
def test_a_job_starts_waits_or_is_refused_by_its_possible_cost(
    exposed: str, spent: str, decision: Decision
) -> None:
    admission = admit_cost(
        worst_usd=usd("3"), exposed_usd=usd(exposed), spent_usd=usd(spent), max_usd=usd("10")
    )
    assert admission.decision is decision


def test_a_refusal_names_the_sums(snapshot: Snapshot) -> None:
    refused = admit_cost(
        worst_usd=usd("3"), exposed_usd=usd("9"), spent_usd=usd("8.5"), max_usd=usd("10")
    )
    snapshot(refused.reason)


def test_a_job_possibly_outlasting_the_suite_is_not_started(snapshot: Snapshot) -> None:
    # four hours less half an hour is 12,600 s after the beginning
    assert (
        admit_time(
            began=1000, now=1000 + 12600, max_hours=Decimal(4), max_job_seconds=1800
        ).decision
        is Decision.START
    )
    late = admit_time(began=1000, now=1000 + 12601, max_hours=Decimal(4), max_job_seconds=1800)
    assert late.decision is Decision.REFUSE
    snapshot(late.reason)
    of_minutes = admit_time(began=0, now=200, max_hours=Decimal("0.0833"), max_job_seconds=120)
    snapshot(of_minutes.reason)


def test_a_running_job_needs_its_cost_until_its_next_possible_stop() -> None:
    # 1000 s billed, 60 s to the next look and 120 s to stop, on 2 instances at 3.60 USD/h (0.001
    # USD/s)
    needed = needed_reservation_usd(
        billed_seconds=1000,
        next_look_seconds=60,
        ending_seconds=120,
        instance_count=2,
        usd_per_hour=usd("3.60"),
    )
    assert needed == usd("2.36")
