"""Each run of a shared job has its part of the time and of the bill, and nothing is billed twice or
lost.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.unit.core.jobs.damages import damaged
from tests.unit.core.jobs.written_jobs import START, WrittenJob, written_job
from traindyno.core.jobs.attempt import Attempt, divide_whole, trained_seconds
from traindyno.core.jobs.journal import JobJournal, read_job_journal
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_attempts import attempts_of_run
from traindyno.core.jobs.run_end import OutpacedBound, RunEnd

RUNS = ("a-t1", "b-t1", "c-t1", "d-t1")
Told = tuple[Attempt, JobJournal | None]
BOUND = {"by": "a-t1", "steps": 5, "least_ratio": 1.3}


def outcome_of(end: RunEnd) -> tuple[Outcome, str | None]:
    return (
        (Outcome.COMPLETED, None) if end.exit_code == 0 else (Outcome.USER_CODE_ERROR, end.failure)
    )


def job_of(
    phases: dict[str, float],
    *,
    name: str = "job-a1",
    discount: float = 0.0,
    outcome: Outcome | None,
    error: str = "",
) -> Attempt:
    billed = sum(
        seconds
        for phase, seconds in phases.items()
        if phase not in ("waiting", "starting", "interrupted")
    )
    return Attempt(
        number=int(name[-1]),
        job_name=name,
        outcome=outcome,
        error=error or None,
        message="of the job",
        started_at=START - 60,
        ended_at=START + 4000,
        billable_seconds=float(round(billed * (1 - discount))),
        training_seconds=float(round(billed)),
        phase_seconds=phases,
    )


def told(job: Attempt, written: WrittenJob) -> Told:
    return job, read_job_journal(written.files, job_name=job.job_name, host_count=1)


def all_attempts(
    jobs: Sequence[Told], runs: Sequence[str] = RUNS
) -> dict[str, tuple[Attempt, ...]]:
    return {
        run_id: attempts_of_run(run_id, jobs, planned=runs, outcome_of=outcome_of)
        for run_id in runs
    }


def test_a_job_by_hand() -> None:
    written = written_job()
    written.clock = 40.0
    for seconds, run_id in zip((100, 200, 300), RUNS, strict=False):
        written.carry(run_id, seconds, exit_code=int(seconds == 200), failure="bad argument")
    written.write("parent_ended")
    # 20 to download, 60 before the parent's first line, 40 to the first run, 600 of runs, 10 to
    # upload
    phases = {"starting": 90.0, "downloading": 20.0, "training": 700.0, "uploading": 10.0}
    by_run = all_attempts([told(job_of(phases, outcome=Outcome.COMPLETED), written)], RUNS[:3])
    first, second, third = (attempts[0] for attempts in by_run.values())
    # 730 - 600 = 130 are not of one run: 43.333 each, and the largest remainder gets the last
    # millisecond
    assert [attempt.billable_seconds for attempt in (first, second, third)] == [
        143.333,
        243.333,
        343.334,
    ]
    assert third.share is not None
    assert (third.share.place, third.share.runs, third.share.own_seconds) == (3, 3, 300)
    assert (third.share.start_seconds, third.share.end_seconds, third.share.alone_seconds) == (
        120,
        10,
        430,
    )
    assert (first.outcome, second.outcome, second.message) == (
        Outcome.COMPLETED,
        Outcome.USER_CODE_ERROR,
        "bad argument",
    )


@pytest.mark.parametrize(
    "forged", [500.0, 701.0, 1e9, 1e300]
)  # the first exceeds the job's time only together
@pytest.mark.parametrize("forger", RUNS[:3])
def test_forged_ends_of_other_runs_move_no_time_beyond_the_jobs(forger: str, forged: float) -> None:
    """A run writes the others' ends with times that no job has.

    60 s of the job are before the parent's first line.
    """
    written = written_job()
    for run_id in RUNS[:3]:
        written.carry(
            run_id, 200.0, **({} if run_id == forger else {"own_milliseconds": 1000 * forged})
        )
    job = job_of({"training": 660.0}, outcome=Outcome.COMPLETED)
    by_run = {
        run_id: attempts[0]
        for run_id, attempts in all_attempts([told(job, written)], RUNS[:3]).items()
    }
    own = {run_id: attempt.share.own_seconds for run_id, attempt in by_run.items() if attempt.share}
    assert own == dict.fromkeys(RUNS[:3], 200.0)
    assert [attempt.billable_seconds for attempt in by_run.values()] == [220.0] * 3


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("first_began", [True, False])
def test_probes_after_a_restart_are_in_the_start_of_no_run(first_began: bool, ends: bool) -> None:
    written = written_job()
    written.clock = 15.0
    if first_began:
        written.carry("a-t1", 100)
    written.write("probe_began", run_id="b-t1", batch=4)
    written.clock += 120
    written.write("probed", run_id="b-t1", own_milliseconds=120_000, batch=4, fits=True)
    written.start()  # spot
    written.write("probe_began", run_id="b-t1", batch=8)
    written.clock += 200
    written.write("probed", run_id="b-t1", own_milliseconds=200_000, batch=8, fits=False)
    written.begin("b-t1")
    if ends:
        written.end("b-t1", 100)
    runs = RUNS[:2] if first_began else RUNS[1:2]
    # 15 of start, 320 of probes, and the runs
    job = job_of(
        {"training": 15.0 + 320 + 100 * len(runs)},
        outcome=Outcome.COMPLETED if ends else None,
        error="" if ends else "ServiceFault",
    )
    job = replace(job, started_at=START)
    by_run = all_attempts([told(job, written)], runs)
    (attempt,) = by_run["b-t1"]
    assert attempt.share is not None
    # Where no run began before the interruption and none ended after it, nothing tells the start
    # from the run.
    unknown = 15 if not (first_began or ends) else 0
    assert (attempt.share.start_seconds, attempt.share.own_seconds) == (15 - unknown, 100 + unknown)
    assert (
        sum(attempts[0].billable_seconds or 0 for attempts in by_run.values())
        == job.billable_seconds
    )


@pytest.mark.parametrize(
    "damage", [{}, {"by": 3}, {"least_ratio": float("nan")}, {"steps": None}, {"least_ratio": -1}]
)
def test_an_outpaced_run_has_its_bound_unless_damaged(damage: dict[str, object]) -> None:
    written = written_job()
    written.carry("a-t1", 100)
    written.carry("b-t1", 20, reason="outpaced", exit_code=None, bound={**BOUND, **damage})
    by_run = all_attempts(
        [told(job_of({"training": 130.0}, outcome=Outcome.COMPLETED), written)], RUNS[:2]
    )
    expected = OutpacedBound(by="a-t1", steps=5, least_ratio=1.3)
    assert (by_run["a-t1"][0].bound, by_run["b-t1"][0].bound) == (
        None,
        None if damage else expected,
    )


@pytest.mark.parametrize("ends", [True, False])
def test_a_throw_away_run_is_paid_by_all_runs_and_in_the_start_of_none(ends: bool) -> None:
    written = written_job()
    written.write("warm_up_began")
    written.clock = 70.0
    written.write("warmed_up", own_milliseconds=50_000)
    written.carry("a-t1", 100)
    written.begin("b-t1")
    if ends:
        written.end("b-t1", 100)
    # 60 before the parent's first line, 70 to the first run, 50 of them thrown away, 200 of runs
    phases = {"training": 60.0 + 70 + 200}
    job = job_of(
        phases, outcome=Outcome.COMPLETED if ends else None, error="" if ends else "ServiceFault"
    )
    first, second = (
        attempts[0] for attempts in all_attempts([told(job, written)], RUNS[:2]).values()
    )
    assert first.share is not None
    assert second.share is not None
    assert (first.share.start_seconds, first.share.own_seconds, second.share.own_seconds) == (
        80,
        100,
        100,
    )
    assert (first.billable_seconds, second.billable_seconds) == (165, 165)


def test_a_fault_is_of_the_run_in_progress_and_the_rest_goes_on() -> None:
    lost = written_job()
    lost.clock = 30.0
    lost.carry("a-t1", 100)
    lost.begin("b-t1")
    phases = {"downloading": 10.0, "training": 60.0 + 30 + 100 + 50}
    dead = told(job_of(phases, outcome=None, error="ServiceFault"), lost)
    later = written_job("job-a2")
    later.clock = 30.0
    for run_id in RUNS[1:]:
        later.carry(run_id, 50)
    more = told(job_of({"training": 200.0}, name="job-a2", outcome=Outcome.COMPLETED), later)
    by_run = all_attempts([dead, more])
    assert {
        run_id: [attempt.job_name for attempt in attempts] for run_id, attempts in by_run.items()
    } == {
        "a-t1": ["job-a1"],
        "b-t1": ["job-a1", "job-a2"],
        "c-t1": ["job-a2"],
        "d-t1": ["job-a2"],
    }
    cut_off = by_run["b-t1"][0]
    assert (cut_off.outcome, cut_off.error, cut_off.is_charged_for_faults) == (
        None,
        "ServiceFault",
        True,
    )
    # the parent began 60 s after the training phase, and the first run 30 s later: 50 s are left
    # for the lost run
    assert cut_off.share is not None
    assert (cut_off.share.own_seconds, cut_off.share.start_seconds) == (50, 100)
    assert cut_off.billable_seconds == 100
    assert not any(
        attempt.is_charged_for_faults
        for attempt in (*by_run["a-t1"], *by_run["c-t1"], by_run["b-t1"][1])
    )


def test_a_job_without_a_begun_run_is_shared_equally_and_its_fault_counts_once() -> None:
    job = job_of({"training": 101.0}, outcome=None, error="ServiceFault")
    firsts = [attempts[0] for attempts in all_attempts([(job, None)], RUNS[:3]).values()]
    assert sum(Decimal(str(attempt.billable_seconds)) for attempt in firsts) == 101
    assert [attempt.is_charged_for_faults for attempt in firsts] == [True, False, False]


def test_a_fault_between_two_runs_is_of_the_next_one() -> None:
    written = written_job()
    written.carry("a-t1", 100)
    job = told(job_of({"training": 300.0}, outcome=None, error="ServiceFault"), written)
    by_run = all_attempts([job])
    assert [len(attempts) for attempts in by_run.values()] == [1, 1, 1, 1]
    assert by_run["b-t1"][0].is_charged_for_faults
    assert [attempt.billable_seconds for attempt in (*by_run["c-t1"], *by_run["d-t1"])] == [0, 0]


@pytest.mark.parametrize("ends_in", ["a run", "a probe", "the throw-away run"])
@pytest.mark.parametrize(
    "outcome",
    [Outcome.USER_CODE_ERROR, Outcome.OUT_OF_MEMORY, Outcome.TIMED_OUT, Outcome.KILLED],
)
def test_a_run_never_begun_does_not_fail_by_the_run_ending_its_job(
    outcome: Outcome, ends_in: str
) -> None:
    written = written_job()
    match ends_in:
        case "a run":
            written.carry("a-t1", 100)
            written.begin("b-t1")
            written.write("run_left", run_id="b-t1", reason="stopped", began=True)
        case "a probe":
            written.write("probe_began", run_id="b-t1", batch=4)
        case _:
            written.write("warm_up_began")
    by_run = all_attempts([told(job_of({"training": 300.0}, outcome=outcome), written)])
    last = {run_id: attempts[-1] for run_id, attempts in by_run.items()}
    assert {last[run_id].outcome for run_id in ("c-t1", "d-t1")} == {Outcome.INTERNAL_ERROR}
    assert last["c-t1"].message == (
        f"not started: its job ended before its turn ({outcome}: of the job)"
    )
    is_of_run = ends_in != "the throw-away run"
    assert last["b-t1"].outcome is (outcome if is_of_run else Outcome.INTERNAL_ERROR)


def test_a_job_failing_before_its_first_run_gives_all_its_outcome() -> None:
    job = job_of({"training": 10.0}, outcome=Outcome.USER_CODE_ERROR)
    by_run = all_attempts([told(job, written_job())])
    assert {attempt.outcome for (attempt,) in by_run.values()} == {Outcome.USER_CODE_ERROR}


def test_a_run_left_over_has_the_last_job_too_and_pays_nothing_for_it() -> None:
    written = written_job()
    written.carry("a-t1", 100)
    written.write("run_left", run_id="b-t1", reason="deadline", began=False)
    job = told(job_of({"training": 120.0}, outcome=None, error="RunsLeft"), written)
    by_run = all_attempts([job], RUNS[:2])
    (left,) = by_run["b-t1"]
    assert (left.error, left.billable_seconds, left.is_charged_for_faults) == ("RunsLeft", 0, False)
    assert by_run["a-t1"][0].billable_seconds == 120


def test_a_completed_job_without_the_end_of_a_run_did_not_complete_it() -> None:
    written = written_job()
    written.carry("a-t1", 100)
    written.begin("b-t1")
    by_run = all_attempts(
        [told(job_of({"training": 120.0}, outcome=Outcome.COMPLETED), written)], RUNS[:2]
    )
    assert by_run["a-t1"][0].outcome is Outcome.COMPLETED
    assert by_run["b-t1"][0].outcome is Outcome.INTERNAL_ERROR


def test_a_run_not_started_again_pays_nothing_of_the_job_saying_so() -> None:
    written = written_job()
    written.end("a-t1", 0.002, reason="jobs_died", exit_code=None, place=None)
    written.carry("b-t1", 100)
    by_run = all_attempts(
        [told(job_of({"training": 120.0}, outcome=Outcome.COMPLETED), written)], RUNS[:2]
    )
    assert [(attempt.outcome, attempt.billable_seconds) for (attempt,) in by_run.values()] == [
        (Outcome.USER_CODE_ERROR, 0),
        (Outcome.COMPLETED, 120),
    ]


def test_an_interruption_is_paid_by_the_interrupted_run() -> None:
    written = written_job()
    written.clock = 10.0
    written.carry("a-t1", 100)
    written.begin("b-t1")
    written.clock += 30
    written.start()
    written.clock += 10
    written.carry("b-t1", 100)
    written.carry("c-t1", 100)
    written.write("parent_ended")
    # 60 + 10 to start, 100 of a, then b: 30 s, 25 s of the new container, 10 s, 100 s; then 100 of
    # c
    phases = {"training": 70.0 + 100 + 165 + 100, "interrupted": 500.0, "starting": 60.0}
    by_run = all_attempts(
        [told(job_of(phases, discount=0.5, outcome=Outcome.COMPLETED), written)], RUNS[:3]
    )
    shares = [attempts[0].share for attempts in by_run.values()]
    assert [share.own_seconds for share in shares if share] == [100, 165, 100]
    # half of (own + 70 ÷ 3), whole milliseconds of 217.5 s rounded to 218
    assert sum(Decimal(str(attempts[0].billable_seconds)) for attempts in by_run.values()) == 218


@examples(150)
@given(st.randoms(use_true_random=False))
def test_shares_add_up_to_every_bill(rng: random.Random) -> None:
    runs = [f"{letter}-t{rng.randrange(1, 9)}" for letter in "abcdefghijkl"[: rng.randrange(1, 13)]]
    jobs, ended = random_jobs(rng, runs)
    by_run = all_attempts(jobs, runs)
    for job, _ in jobs:
        parts = [
            attempt
            for attempts in by_run.values()
            for attempt in attempts
            if attempt.job_name == job.job_name
        ]
        billed = sum(Decimal(str(part.billable_seconds)) for part in parts)
        assert billed == Decimal(str(job.billable_seconds))
        assert sum(part.training_seconds or 0.0 for part in parts) == pytest.approx(
            trained_seconds(job), abs=1e-6
        )
        assert all(
            (part.billable_seconds or 0) >= 0 and (part.training_seconds or 0) >= 0
            for part in parts
        )
        is_fault = job.error == "ServiceFault"
        assert sum(
            part.is_charged_for_faults and part.error == "ServiceFault" for part in parts
        ) == int(is_fault)
        assert all(
            part.share and min(part.share.start_seconds, part.share.own_seconds) >= 0
            for part in parts
        )
    assert {run_id for run_id in runs if by_run[run_id][-1].outcome is Outcome.COMPLETED} == ended


def random_jobs(rng: random.Random, runs: Sequence[str]) -> tuple[list[Told], set[str]]:
    """Up to four jobs, each of which ends well, dies or leaves runs; on spot, with wrong clocks or
    lost journals.
    """
    jobs: list[Told] = []
    ended: set[str] = set()
    for number in range(1, 5):
        open_runs = [run_id for run_id in runs if run_id not in ended]
        if not open_runs:
            break
        written = written_job(f"job-a{number}")
        written.clock = rng.choice([0.0, rng.uniform(0, 400)])
        written.started_at += rng.choice([0.0, 0.0, -1e5, 1e5])
        dies_after = rng.choice([None, 0, rng.randrange(len(open_runs))])
        for place, run_id in enumerate(open_runs):
            if place == dies_after:
                if rng.random() < 0.7:
                    written.begin(run_id)
                break
            written.carry(run_id, rng.choice([0.001, rng.uniform(0.1, 900)]))
            ended.add(run_id)
        else:
            written.write("parent_ended")
        lasted = written.clock * rng.choice([1.0, 1.0, 0.5]) + rng.choice(
            [0.0, rng.uniform(0, 300)]
        )
        is_lost = dies_after is not None
        phases = {
            "starting": rng.uniform(0, 99),
            "downloading": rng.choice([0.0, 5.0]),
            "training": lasted,
        }
        job = job_of(
            phases,
            name=f"job-a{number}",
            discount=rng.choice([0.0, 0.0, 0.7]),
            outcome=None if is_lost else Outcome.COMPLETED,
            error="ServiceFault" if is_lost else "",
        )
        has_none = dies_after == 0 and rng.random() < 0.5
        jobs.append((job, None) if has_none else told(job, written))
    return jobs, ended


@examples(200)
@given(st.data())
def test_a_damaged_journal_loses_nothing_of_the_bill(data: st.DataObject) -> None:
    written = written_job()
    for run_id in RUNS[:3]:
        written.carry(run_id, 100)
    written.begin(RUNS[3])
    (journal,) = (key for key in written.files if key.startswith("journal/"))
    missing = data.draw(st.sets(st.sampled_from(sorted(written.files))))
    files = {key: text for key, text in written.files.items() if key not in missing}
    files[journal] = data.draw(damaged(written.files[journal]))
    job = job_of({"training": 380.0}, outcome=None, error="ServiceFault")
    by_run = all_attempts([(job, read_job_journal(files, job_name="job-a1", host_count=1))])
    parts = [attempt for attempts in by_run.values() for attempt in attempts]
    assert sum(Decimal(str(part.billable_seconds)) for part in parts) == 380
    assert sum(part.is_charged_for_faults for part in parts) == 1


def test_a_late_end_of_a_run_stays_after_a_second_start() -> None:
    first = written_job()
    again = written_job("job-a2")
    first.carry("a-t1", 100)
    again.begin("a-t1")
    again.clock += 50
    jobs = [
        told(job_of({"training": 110.0}, outcome=None, error="RunsLeft"), first),
        told(job_of({"training": 60.0}, name="job-a2", outcome=Outcome.STOPPED_BY_USER), again),
    ]
    attempts = all_attempts(jobs, RUNS[:1])["a-t1"]
    assert [(attempt.outcome, attempt.billable_seconds) for attempt in attempts] == [
        (Outcome.COMPLETED, 110),
        (Outcome.COMPLETED, 60),
    ]


@examples(200)
@given(st.integers(0, 10**7), st.lists(st.just(0) | st.integers(0, 10**9), min_size=1, max_size=24))
def test_parts_are_whole_and_in_proportion(total: int, weights: list[int]) -> None:
    parts = divide_whole(total, weights)
    assert sum(parts) == total
    whole = sum(weights)
    exact = [total * weight / whole if whole else total / len(weights) for weight in weights]
    assert all(abs(part - at) < 1 for part, at in zip(parts, exact, strict=True))
