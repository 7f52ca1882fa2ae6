import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import (
    EXECUTION,
    NOW,
    SETTINGS,
    UNHURRIED,
    MemoryLab,
    make_lab,
    no_sleep,
)
from traindyno.core.costs.prices import cost_usd
from traindyno.core.errors import Throttled
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.job_time import UPLOAD_SECONDS
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.finish_run import finish_run
from traindyno.lab.reconcile_runs import stop_overruns
from traindyno.lab.record_run import record_runs
from traindyno.lab.submit_run import submit_run
from traindyno.store.attempts import AttemptRow

HOURLY_USD = Decimal("1.20")
# With 480 s for the image, 120 s to stop, 300 s to upload and 60 s of margin, half an hour is
# billed at most: 0.60 USD.
LIMIT_SECONDS = 840
MINIMUM_CHARGE_USD = cost_usd(60, 1, HOURLY_USD)


def limits(max_usd: float) -> dict[str, Any]:
    return {"max_usd": max_usd, "max_hours": 4, "max_job_seconds": LIMIT_SECONDS}


def ages_of(rows: list[AttemptRow], now: float) -> dict[str, float]:
    return {row.job_name: now - row.submitted_at for row in rows}


def look(lab: MemoryLab, now: float) -> int:
    rows = list(lab.attempts.list_open(EXECUTION))
    return stop_overruns(
        rows, ages=ages_of(rows, now), services=lab.services, now=now, pace=UNHURRIED
    )


def started(max_usd: float, trained_since: float | None = NOW) -> tuple[MemoryLab, str]:
    """One job at 1.20 USD an hour that may be billed for half an hour, so 0.60 USD are held back
    for it.
    """
    lab, (run, *_) = make_lab(limits=limits(max_usd))
    submit_run(run, "token", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (name,) = lab.jobs.jobs
    if trained_since is not None:
        lab.jobs.jobs[name]["TrainingStartTime"] = trained_since
    return lab, name


def test_a_job_within_its_reserve_is_not_even_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, _ = started(0.60)
    monkeypatch.setattr(lab.jobs, "describe", None)
    # SageMaker stops it at 840 s, or a little later
    assert look(lab, NOW + 1380) == 0


def test_a_needy_job_gets_more_within_the_cap() -> None:
    lab, name = started(1.00)
    # 1500 s, 300 s to the next look, and 480 s to stop and to upload, at 1.20 / 3600 USD
    assert look(lab, NOW + 1500) == 0
    assert lab.attempt(name).reserved_usd == lab.money.exposed_usd == Decimal("0.76")
    assert look(lab, NOW + 1500) == 0
    assert lab.money.exposed_usd == Decimal("0.76")


@pytest.mark.parametrize(
    ("seconds", "outcome"), [(1381, "timed_out"), (1500, "timed_out"), (1501, "cost_stopped")]
)
def test_a_needy_job_beyond_the_cap_is_stopped_and_its_run_says_so(
    seconds: int, outcome: str
) -> None:
    """Until 1500 s the script may be in its two minutes after SIGTERM, which SageMaker sends at the
    limit.
    """
    lab, name = started(0.60)
    assert look(lab, NOW + seconds) == 1
    assert lab.jobs.stopped == [name]
    lab.jobs.end(name, "Stopped", billable_seconds=1500)
    finish_run(name, services=lab.services, now=NOW + 1500)
    run = lab.run_of(name)
    record_runs(run, final=None, services=lab.services)
    assert lab.summary(run.run_id).outcome == outcome
    assert lab.money.exposed_usd == lab.money.spent_usd == Decimal("0.50")


@pytest.mark.parametrize("trained_since", [None, NOW + 2000])
def test_waiting_for_capacity_costs_nothing(trained_since: float | None) -> None:
    lab, _ = started(0.60, trained_since)
    assert look(lab, NOW + 3000) == 0


@pytest.mark.parametrize(
    ("waiting", "seconds"), [(["Interrupted"], 6000), (["Interrupted", "Starting"], 7000)]
)
def test_a_spot_job_that_waits_for_capacity_again_is_not_billed(
    waiting: list[str], seconds: int
) -> None:
    """It trained 600 s, and has been waiting since; the last of these statuses is open."""
    lab, name = started(0.60)
    begins = [NOW + 600, NOW + 5000][: len(waiting)]
    lab.jobs.jobs[name]["SecondaryStatusTransitions"] = [
        {"Status": "Starting", "StartTime": NOW - 500, "EndTime": NOW},
        {"Status": "Training", "StartTime": NOW, "EndTime": NOW + 600},
        *(
            {"Status": status, "StartTime": begin, "EndTime": end}
            for status, begin, end in zip(waiting, begins, [*begins[1:], None], strict=True)
        ),
    ]
    assert look(lab, NOW + seconds) == 0
    assert lab.attempt(name).reserved_usd == Decimal("0.60")


def test_a_spot_job_that_trains_again_is_billed_for_both_parts() -> None:
    lab, name = started(0.60)
    lab.jobs.jobs[name]["SecondaryStatusTransitions"] = [
        {"Status": "Training", "StartTime": NOW, "EndTime": NOW + 600},
        {"Status": "Interrupted", "StartTime": NOW + 600, "EndTime": NOW + 5000},
        {"Status": "Restarting", "StartTime": NOW + 5000, "EndTime": NOW + 5100},
        {"Status": "Training", "StartTime": NOW + 5100},
    ]
    # 600 s + 780 s are within the 1380 s of its reservation until its stop and upload
    assert look(lab, NOW + 5100 + 780) == 0
    assert look(lab, NOW + 5100 + 781) == 1


def test_a_job_told_to_stop_is_not_told_again() -> None:
    lab, _ = started(0.60)
    assert look(lab, NOW + 1500) == 1
    assert look(lab, NOW + 1500) == 0
    assert lab.money.exposed_usd == Decimal("0.60")


def test_a_lost_request_to_stop_a_job_is_repeated_and_the_job_holds_the_cap() -> None:
    lab, name = started(0.90)
    lab.jobs.stop_refusals = [Throttled("slow down"), Throttled("slow down")]
    with pytest.raises(Throttled):
        look(lab, NOW + 2200)
    assert lab.attempt(name).stopped_for == "cost_stopped"
    assert look(lab, NOW + 2500) == 1
    assert lab.jobs.stopped == [name]
    assert lab.money.exposed_usd == Decimal("0.90")


@pytest.mark.parametrize(
    "ending", [{"SecondaryStatus": "Uploading"}, {"TrainingJobStatus": "Stopping"}]
)
@pytest.mark.parametrize("was_stopped", [False, True])
def test_a_longer_upload_holds_the_whole_cap_and_then_its_bill_beyond(
    ending: dict[str, str], was_stopped: bool
) -> None:
    """Nothing ends an upload on AWS, so it is the one cost that can exceed the cap."""
    lab, name = started(1.50)
    if was_stopped:
        lab.attempts.note_stop(name, Outcome.COST_STOPPED)
    lab.jobs.jobs[name] |= ending
    # its 1800 s reach beyond the next look
    assert look(lab, NOW + 1500) == 0
    assert lab.money.exposed_usd == Decimal("0.60")
    # there is room for another job, but this one may be billed beyond its 1800 s before the next
    # look
    assert look(lab, NOW + 1501) == 0
    assert lab.money.exposed_usd == lab.attempt(name).reserved_usd == Decimal("1.50")
    assert submit_other(lab) == "SlotUnavailable"
    # 6000 s are 2 USD
    assert look(lab, NOW + 6000) == 0
    assert lab.money.exposed_usd == lab.attempt(name).reserved_usd == Decimal("2.00")
    assert lab.jobs.stopped == []
    assert submit_other(lab) == "SlotUnavailable"
    lab.jobs.end(name, "Completed", billable_seconds=2700)
    finish_run(name, services=lab.services, now=NOW + 6300)
    assert lab.money.exposed_usd == lab.money.spent_usd == Decimal("0.90")
    assert submit_other(lab) is None


@pytest.mark.parametrize("uploading", [0, 1])
def test_a_long_upload_leaves_room_for_a_job_training_beyond_its_limit(uploading: int) -> None:
    """Both can follow from one outage of SageMaker.

    The cap has room for the second job until the next look.
    """
    lab, _ = started(5.00)
    assert submit_other(lab) is None
    names = sorted(lab.jobs.jobs)
    for name in names:
        lab.jobs.jobs[name]["TrainingStartTime"] = NOW
    uploads = names[uploading]
    trains = names[1 - uploading]
    lab.jobs.jobs[uploads]["SecondaryStatus"] = "Uploading"
    assert look(lab, NOW + 1501) == 0
    assert lab.jobs.stopped == []
    assert Decimal("0.76") < lab.attempt(trains).reserved_usd < Decimal("0.77")
    assert lab.money.exposed_usd == Decimal("5.00")


def submit_other(lab: MemoryLab) -> str | None:
    """What the task of another run got; None if its job was started."""
    suite = lab.bucket.read_as(suite_key(EXECUTION), read_stored_suite)
    other = trial_runs(EXECUTION, suite.cells, [2])[0]
    return submit_run(
        other, "other", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep
    ).answered


def test_a_reservation_for_a_job_ending_meanwhile_is_given_back() -> None:
    lab, name = started(1.00)
    rows = list(lab.attempts.list_open(EXECUTION))
    lab.change_attempt(name, end=Attempt(number=1, job_name=name))
    assert (
        stop_overruns(
            rows,
            ages=ages_of(rows, NOW + 1800),
            services=lab.services,
            now=NOW + 1800,
            pace=UNHURRIED,
        )
        == 0
    )
    assert lab.money.exposed_usd == Decimal("0.60")


@pytest.mark.parametrize("cap_usd", ["1.30", "2.00", "3.17", "5.00"])
def test_suite_of_threefold_overruns_ends_within_its_cap_and_one_minimum_charge(
    cap_usd: str,
) -> None:
    lab, runs = make_lab(
        limits=limits(float(cap_usd)),
        matrix={"compiler": ["none", "inductor"], "batch_size_per_device": [1, 2, 4, 8]},
    )
    waiting = list(runs)
    for minute in range(0, 14_000, 60):
        now = NOW + minute
        waiting = submit_three(lab, waiting, now)
        if minute % 300 == 0:
            look(lab, now)
        end_those_that_are_done(lab, now)
    assert Decimal("0.60") < lab.money.spent_usd <= Decimal(cap_usd) + MINIMUM_CHARGE_USD
    assert not list(lab.attempts.list_open())


def submit_three(lab: MemoryLab, waiting: list[Run], now: float) -> list[Run]:
    """What isn't started now is asked for again."""
    for run in waiting[: 3 - len(list(lab.attempts.list_open()))]:
        before = set(lab.jobs.jobs)
        submit_run(
            run,
            f"token-{run.run_id}-{now}",
            services=lab.services,
            settings=SETTINGS,
            now=now,
            sleep=no_sleep,
        )
        for name in set(lab.jobs.jobs) - before:
            lab.jobs.jobs[name]["TrainingStartTime"] = now
            waiting = [other for other in waiting if other is not run]
    return waiting


def end_those_that_are_done(lab: MemoryLab, now: float) -> None:
    """A job runs for three times its limit, or until its upload ends after it was told to stop."""
    for row in list(lab.attempts.list_open()):
        ran = now - row.submitted_at
        stopping = lab.jobs.stopped.count(row.job_name) > 0
        if stopping or ran >= 3 * LIMIT_SECONDS:
            status = "Stopped" if stopping else "Completed"
            lab.jobs.end(row.job_name, status, billable_seconds=int(ran) + 420 * stopping)
            finish_run(row.job_name, services=lab.services, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """How long a job trains, stops and uploads, from its start on.

    It heeds its limit, as SageMaker makes it.
    """

    trained_seconds: int
    stop_seconds: int
    upload_seconds: int

    @property
    def billed_seconds(self) -> int:
        return self.trained_seconds + self.stop_seconds + self.upload_seconds

    @property
    def phases(self) -> list[tuple[int, str]]:
        ends = (self.trained_seconds, self.trained_seconds + self.stop_seconds, self.billed_seconds)
        return list(zip(ends, ("Training", "Stopping", "Uploading"), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_jobs_with_late_stops_and_long_uploads_cost_no_more_than_the_cap(seed: int) -> None:
    """Random limits, stops, uploads and caps.

    At every minute, what is billed is reserved, which is within the cap.
    """
    rng = random.Random(seed)
    limit = rng.randint(10, 4000)
    upload = UPLOAD_SECONDS
    longest_usd = cost_usd(limit + upload + 180, 1, HOURLY_USD)
    cap_usd = (longest_usd * Decimal(rng.uniform(1, 6))).quantize(Decimal("0.01")) + Decimal("0.01")
    suite_limits = {"max_usd": str(cap_usd), "max_hours": 99, "max_job_seconds": limit}
    lab, runs = make_lab(limits=suite_limits, measurement={"trials": 3})
    fates = {run.run_id: _fate(rng, limit, upload) for run in runs}
    waiting = list(runs)
    minute = 0
    while waiting or any(lab.attempts.list_open()):
        assert minute < 100_000
        now = NOW + 60 * minute
        waiting = submit_three(lab, waiting, now)
        waiting = waiting if any(lab.attempts.list_open()) else []
        if minute % 5 == 0:
            assert look(lab, now) == 0, "a job that heeds its limit is never stopped for its cost"
        billed_usd = lab.money.spent_usd + sum(
            _play(lab, row, fates, now) for row in lab.attempts.list_open()
        )
        assert billed_usd <= lab.money.exposed_usd <= cap_usd
        minute += 1
    assert 0 < lab.money.spent_usd <= cap_usd


def _fate(rng: random.Random, limit: int, upload: int) -> Fate:
    is_stopped = rng.random() < 0.7
    return Fate(
        trained_seconds=limit + rng.randint(0, 30) if is_stopped else rng.randint(1, limit),
        stop_seconds=rng.choice([0, 120]) if is_stopped else 0,
        upload_seconds=rng.choice([0, rng.randint(0, upload), upload]),
    )


def _play(lab: MemoryLab, row: AttemptRow, fates: dict[str, Fate], now: float) -> Decimal:
    """What the job is billed so far; nothing if it has ended, because that is spent."""
    fate = fates[lab.run_of(row.job_name).run_id]
    age = int(now - row.submitted_at)
    for end, phase in fate.phases:
        if age < end:
            lab.jobs.jobs[row.job_name]["SecondaryStatus"] = phase
            return cost_usd(age, 1, HOURLY_USD)
    lab.jobs.end(row.job_name, "Completed", billable_seconds=fate.billed_seconds)
    finish_run(row.job_name, services=lab.services, now=now)
    return Decimal(0)
