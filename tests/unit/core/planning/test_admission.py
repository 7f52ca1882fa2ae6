"""The caps of money and time, alone and over whole simulated suites."""

import random
from dataclasses import dataclass
from decimal import Decimal

import pytest

from traindyno.core.costs.prices import cost_usd
from traindyno.core.planning.admission import (
    Decision,
    admit_cost,
    admit_time,
    needed_reservation_usd,
)
from traindyno.core.suite.job_time import STOP_SECONDS


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
def test_a_job_starts_waits_or_is_refused_by_what_it_may_cost(exposed: str, spent: str, decision: Decision) -> None:
    admission = admit_cost(worst_usd=usd("3"), exposed_usd=usd(exposed), spent_usd=usd(spent), max_usd=usd("10"))
    assert admission.decision is decision


def test_a_refusal_names_the_sums() -> None:
    refused = admit_cost(worst_usd=usd("3"), exposed_usd=usd("9"), spent_usd=usd("8.5"), max_usd=usd("10"))
    assert refused.reason == "its worst case is $3.00; $8.50 of limits.max_usd $10.00 is spent"


def test_a_job_that_could_outlast_the_suite_is_not_started() -> None:
    # four hours less half an hour is 12,600 s after the beginning
    assert (
        admit_time(began=1000, now=1000 + 12600, max_hours=Decimal(4), max_job_seconds=1800).decision is Decision.START
    )
    late = admit_time(began=1000, now=1000 + 12601, max_hours=Decimal(4), max_job_seconds=1800)
    assert late.decision is Decision.REFUSE
    assert late.reason == "it may run 1800 s, and 1799 s are left of limits.max_hours 4"


def test_a_running_job_needs_what_it_will_have_cost_when_it_can_be_stopped() -> None:
    # 1000 s billed, 60 s to the next look and 120 s to stop, on 2 instances at 3.60 USD/h (0.001 USD/s)
    needed = needed_reservation_usd(
        billed_seconds=1000, next_look_seconds=60, ending_seconds=120, instance_count=2, usd_per_hour=usd("3.60")
    )
    assert needed == usd("2.36")


@dataclass(slots=True, kw_only=True)
class RunningJob:
    reserved_usd: Decimal
    ends_after_seconds: int
    billed_seconds: int = 0
    is_stopping: bool = False


@pytest.mark.parametrize("seed", range(30))
def test_a_suite_whose_jobs_overrun_threefold_ends_within_its_cap(seed: int) -> None:
    """Jobs that may run 600 s run up to 1800; three at a time, looked at every minute."""
    rng = random.Random(seed)
    price, cap, look_seconds = usd("36"), usd("40"), 60
    worst = cost_usd(600, 1, price)
    spent, exposed, running = usd("0"), usd("0"), list[RunningJob]()
    waiting = [rng.randint(100, 1800) for _ in range(40)]
    while running or waiting:
        while waiting and len(running) < 3:
            admission = admit_cost(worst_usd=worst, exposed_usd=exposed, spent_usd=spent, max_usd=cap)
            if admission.decision is Decision.WAIT:
                break
            if admission.decision is Decision.REFUSE:
                waiting.clear()
            else:
                running.append(RunningJob(reserved_usd=worst, ends_after_seconds=waiting.pop()))
                exposed += worst
        for job in list(running):
            job.billed_seconds += look_seconds
            needed = needed_reservation_usd(
                billed_seconds=job.billed_seconds,
                next_look_seconds=look_seconds,
                ending_seconds=STOP_SECONDS,
                instance_count=1,
                usd_per_hour=price,
            )
            if job.billed_seconds >= job.ends_after_seconds:
                running = [other for other in running if other is not job]
                paid = cost_usd(job.ends_after_seconds, 1, price)
                spent, exposed = spent + paid, exposed - job.reserved_usd + paid
            elif needed > job.reserved_usd and not job.is_stopping:
                if exposed + needed - job.reserved_usd <= cap:
                    exposed, job.reserved_usd = exposed + needed - job.reserved_usd, needed
                else:
                    job.is_stopping, job.ends_after_seconds = True, job.billed_seconds + STOP_SECONDS
    assert usd("20") < spent <= cap
