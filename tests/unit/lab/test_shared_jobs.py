"""One job for several runs: whatever happens, each run has one result, the money is settled once
for each job, and no attempt starts unless runs are left.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.core.jobs.written_jobs import written_job
from tests.unit.lab.shared_job_world import CRASH, LATER, Container, Killed, World
from tests.unit.lab_in_memory import EXECUTION, UNHURRIED
from tests.unit.step_log_samples import log_lines
from traindyno.core.errors import RunsLeft, Throttled
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import not_started_text, step_logs_prefix
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import job_document_key, result_key
from traindyno.lab.budget import time_usd
from traindyno.lab.reconcile_runs import Swept, sweep
from traindyno.lab.record_run import record_runs
from traindyno.parent.output import RunOutput
from traindyno.store import results_bucket
from traindyno.store.attempts import AttemptRow
from traindyno.store.results import load_results
from traindyno.store.spending import rounded_up


def result_of(world: World) -> dict[str, RunResult]:
    results = load_results(world.lab.bucket, EXECUTION)
    assert len({result.run.run_id for result in results}) == len(results)
    return {result.run.run_id: result for result in results}


@pytest.fixture(autouse=True)
def reads_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a seed would not decide which call is shaken, nor in which order runs are
    recorded.
    """
    monkeypatch.setattr(results_bucket, "READS_AT_ONCE", 1)
    random.seed(0)


def completions(world: World) -> dict[str, set[bool]]:
    """Completions of the ended runs, by their files.

    A run whose files came late may have ended twice.
    """
    journals = [world.journal(name) for name in world.lab.attempt_rows]
    completed: dict[str, set[bool]] = {}
    for journal in journals:
        for run_id, end in journal.ends.items():
            completed.setdefault(run_id, set()).add(end.exit_code == 0)
    return completed


def check_results(world: World) -> None:
    """Each run has one result, which is what its own files say, whatever became of its jobs."""
    results = result_of(world)
    ended = completions(world)
    assert sorted(results) == sorted(
        {*(run.run_id for run in world.job.runs), *(ended.keys() & {*world.further})}
    )
    for run_id, result in results.items():
        assert world.lab.summary(run_id).outcome is result.outcome
        is_early = any(
            attempt.billable_seconds is None for attempt in result.attempts
        )  # its task gave up
        if not is_early:
            assert (result.outcome is Outcome.COMPLETED) in ended.get(run_id, {False})


def check_money(world: World) -> None:
    """Each job is paid once; the shares of its runs add up to its bill to the millisecond."""
    rows = world.lab.attempt_rows
    assert all(row.end is not None and not row.is_open for row in rows.values())
    money = world.lab.money
    assert (
        money.exposed_usd
        == money.spent_usd
        == sum((paid_usd(row) for row in rows.values()), Decimal(0))
    )
    shared = Counter[str]()
    unknown = set[str]()
    for attempt in attempts_in(result_of(world).values()):
        if attempt.billable_seconds is None:
            unknown.add(attempt.job_name)
        shared[attempt.job_name] += round(1000 * (attempt.billable_seconds or 0))
    assert world.times_out or not unknown
    bills = {name: 1000 * (row.end.billable_seconds or 0) for name, row in rows.items() if row.end}
    assert {name: bill for name, bill in bills.items() if bill and name not in unknown} == {
        name: paid for name, paid in shared.items() if paid and name not in unknown
    }


def paid_usd(row: AttemptRow) -> Decimal:
    """An end without a billed time keeps the reservation, which no run of these worlds leaves
    behind.
    """
    assert row.end is not None
    return rounded_up(time_usd(row, row.end.billable_seconds or 0))


def attempts_in(results: Iterable[RunResult]) -> list[Attempt]:
    return [attempt for result in results for attempt in result.attempts]


def check_attempts(world: World) -> None:
    """The attempts count from 1, an attempt starts while runs are left only, and idle ones are
    limited.
    """
    rows = sorted(world.lab.attempt_rows.values(), key=lambda row: row.number)
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert all(row.end is not None and row.end.outcome is None for row in rows[:-1])
    started = [row for row in rows if row.job_name in world.lab.jobs.jobs]
    idle = [row for row in started if not world.journal(row.job_name).ends]
    assert len(idle) <= world.max_attempts


@pytest.mark.parametrize("seed", range(60))
def test_every_run_has_one_result_and_every_job_is_paid_once(seed: int) -> None:
    """Events come late, twice, in any order or never; files of some hosts are lost, late or cut
    off; calls are throttled and functions killed.
    """
    source = random.Random(seed)
    world = World(
        source,
        run_count=source.randint(2, 4),
        hosts=source.choice([1, 2, 3]),
        rate=(rate := source.choice([0.0, 0.02, 0.1])),
        loses_files=source.choice([0.0, 0.0, 0.2]),
        damages=source.choice([0.0, 0.0, 0.1]),
        times_out=source.choice([0.0, 0.0, 0.1]),
        stops=source.choice([0.0, 0.0, 0.1]),
        again=0.0
        if rate == 0.1
        else source.choice([0.0, 0.5]),  # with more files few calls would read them all
    )
    world.run_to_end()
    if not world.lab.attempt_rows:
        assert world.is_stopped, "nothing was started, and nobody stopped it"
        return
    check_results(world)
    check_money(world)
    check_attempts(world)


def calm_world(*, run_count: int, max_attempts: int = 3) -> World:
    """Nothing fails unless the test says so, and each run exits with 0."""
    return World(random.Random(0), run_count=run_count, max_attempts=max_attempts, failing=0.0)


def live(
    world: World, whole: int, status: str = "Completed", *, late: str = "nothing", **changes: Any
) -> str:
    """The newest job ends ``whole`` of its runs, then itself.

    Files whose keys have ``late`` in them come later.
    """
    name = list(world.lab.jobs.jobs)[-1]
    written = Container(world, name).write(world.left, whole)
    files = {f"{world.prefix}{key}": text for key, text in written.items()}
    world.late |= {key: text for key, text in files.items() if late in key}
    world.lab.objects.contents |= {
        key: text for key, text in files.items() if key not in world.late
    }
    world.lab.jobs.end(name, status, **changes)
    world.finish(name)
    return name


def record_all(world: World) -> dict[str, RunResult]:
    world.record({})
    return result_of(world)


def answers(world: World) -> list[str]:
    return [name for _, name, _ in world.lab.answers.given]


@pytest.mark.parametrize(("max_attempts", "ending"), [(1, (1, 1, 1, 1)), (2, (1, 1, 0, 2))])
def test_attempts_with_ended_runs_do_not_count_against_the_limit(
    max_attempts: int, ending: tuple[int, ...]
) -> None:
    """Each attempt ends so many runs."""
    world = calm_world(run_count=4, max_attempts=max_attempts)
    for number, whole in enumerate(ending):
        world.start(f"t{number}")
        live(world, whole)
    assert answers(world) == ["RunsLeft", "RunsLeft", "RunsLeft", "success"]
    assert {result.outcome for result in record_all(world).values()} == {Outcome.COMPLETED}


def job_of_many_runs(count: int) -> World:
    """It has ended, and its runs are to be recorded."""
    world = calm_world(run_count=4)
    runs = [
        replace(world.job.runs[0], run_id=f"0000000a-t{trial}", trial=trial)
        for trial in range(count)
    ]
    world.job = replace(world.job, runs=tuple(runs))
    world.run_count = count
    world.start("t1")
    live(world, count)
    world.lab.objects.reads.clear()
    return world


def test_each_file_of_a_job_is_read_once_for_all_its_runs() -> None:
    world = job_of_many_runs(24)
    record_all(world)
    read = [count for key, count in world.lab.objects.reads.items() if key.startswith(world.prefix)]
    assert len(read) > 24
    assert set(read) == {1}
    assert world.open_jobs == []


def test_recording_goes_on_after_the_end_of_its_time() -> None:
    world = job_of_many_runs(24)
    for recorded in (10, 20):
        has_time = partial(lambda most: len(world.lab.run_rows) < most, recorded)
        with pytest.raises(RunsLeft, match=f"job {world.job.job_id}: 10 runs were recorded"):
            record_runs(world.job, final=None, services=world.lab.services, may_go_on=has_time)
    assert len(record_all(world)) == 24
    written = [count for key, count in world.lab.objects.writes.items() if "/results/" in key]
    assert written == [1] * 24


def test_an_unrecordable_run_stops_no_other_and_is_told_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = job_of_many_runs(24)
    lost, busy = (run.run_id for run in world.job.runs[:2])
    write = world.lab.objects.write
    errors = [Throttled("busy")]

    def refusing(key: str, *rest: Any) -> None:
        if key == result_key(EXECUTION, lost):
            raise PermissionError(key)
        if key == result_key(EXECUTION, busy) and errors:
            raise errors.pop()
        write(key, *rest)

    monkeypatch.setattr(world.lab.objects, "write", refusing)
    with pytest.raises(Throttled):  # after which the state machine repeats the call
        world.record({})
    assert len(result_of(world)) == 22
    with pytest.raises(PermissionError):
        world.record({})
    assert {run.run_id for run in world.job.runs} - result_of(world).keys() == {lost}
    assert len(world.open_jobs) == 1


def test_a_run_ending_the_function_each_time_keeps_no_other_from_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = job_of_many_runs(24)
    lost = world.job.runs[0].run_id
    write = world.lab.objects.write

    def ending(key: str, *rest: Any) -> None:
        if key == result_key(EXECUTION, lost):
            raise Killed
        write(key, *rest)

    monkeypatch.setattr(world.lab.objects, "write", ending)
    for _ in range(61):  # as often as Step Functions calls it
        with pytest.raises(Killed):
            world.record({})
    assert {run.run_id for run in world.job.runs} - result_of(world).keys() == {lost}


def test_attempts_without_ended_runs_are_limited() -> None:
    """The run in progress has used the time; the other one never began."""
    world = calm_world(run_count=2, max_attempts=2)
    for number in range(2):
        world.start(f"t{number}")
        live(world, 0, "Stopped", secondary="MaxRuntimeExceeded")
    assert answers(world) == ["RunsLeft", "success"]
    assert {result.outcome for result in record_all(world).values()} == {
        Outcome.TIMED_OUT,
        Outcome.INTERNAL_ERROR,
    }


def test_a_job_failing_before_its_first_run_begins_is_not_tried_again() -> None:
    world = calm_world(run_count=2)
    world.start("t1")
    name = list(world.lab.jobs.jobs)[-1]
    world.lab.jobs.end(name, "Failed", reason=CRASH)
    world.finish(name)
    assert answers(world) == ["success"]
    assert {result.outcome for result in record_all(world).values()} == {Outcome.USER_CODE_ERROR}


def test_no_job_starts_if_the_last_end_arrives_before_the_next_attempt() -> None:
    world = calm_world(run_count=2)
    world.start("t1")
    live(world, 2, late="8f152a37-t1/ended")
    world.lab.objects.contents |= world.late
    world.start("t2")
    assert (answers(world), len(world.lab.jobs.jobs)) == (["RunsLeft", "success"], 1)


def test_a_run_with_a_late_end_during_the_next_attempt_has_ended_then() -> None:
    """The next attempt may have begun it again, and may have failed."""
    world = calm_world(run_count=2)
    world.start("t1")
    first = live(world, 2, late="8f152a37-t1/ended")
    world.start("t2")
    live(world, 0, "Stopped", secondary="MaxRuntimeExceeded")
    world.lab.objects.contents |= world.late
    results = record_all(world)
    assert {result.outcome for result in results.values()} == {Outcome.COMPLETED}
    again = results["8f152a37-t1"]
    assert again.attempts[0].job_name == first
    assert len(again.attempts) == 2  # what the second one was billed is not lost


def test_an_attempt_left_open_does_not_end_the_next_one() -> None:
    """SubmitRun was killed between the start of the next job and the closing of the one before."""
    world = calm_world(run_count=2)
    world.start("t1")
    first = live(world, 1)
    world.start("t2")
    world.lab.change_attempt(first, is_open=True)
    world.stop()
    world.lab.jobs.stopped.clear()
    world.finish(first)
    assert world.lab.jobs.stopped == []
    assert world.lab.run_rows == {}
    live(world, 1, "Stopped")
    assert {result.outcome for result in result_of(world).values()} == {Outcome.COMPLETED}


def test_runs_ended_before_a_stop_are_recorded_although_no_job_runs() -> None:
    world = calm_world(run_count=2)
    world.start("t1")
    live(world, 1)
    world.stop()
    world.sweep()
    outcomes = [result.outcome for _, result in sorted(result_of(world).items())]
    assert outcomes == [Outcome.COMPLETED, Outcome.STOPPED_BY_USER]
    assert world.open_jobs == []


def test_a_cut_off_run_is_not_reported_as_a_refused_job() -> None:
    """Of the runs that the job left, the first was measured, and the second not begun."""
    world = calm_world(run_count=3, max_attempts=5)
    world.start("t1")
    name = live(world, 1, "Stopped", secondary="MaxRuntimeExceeded")
    logged = f"{step_logs_prefix(world.job.runs[1])}{name}/rank-00000.1790000000000.jsonl"
    world.lab.objects.contents[logged] = "".join(log_lines(step_seconds=[0.5] * 40)).encode()
    refused = not_started_text(world.job, "9 s are left of limits.max_minutes 4")
    world.record({"outcome": "cost_stopped", "message": refused})
    completed, begun, left = (result_of(world)[run.run_id] for run in world.job.runs)
    assert completed.outcome is Outcome.COMPLETED
    assert {begun.outcome, left.outcome} == {Outcome.COST_STOPPED}
    assert begun.samples_per_second
    assert begun.message == (
        "cut off, and its job was not started again: 9 s are left of limits.max_minutes 4"
    )
    assert left.message == refused


def test_a_job_waiting_for_its_next_attempt_is_not_overdue() -> None:
    """The alarm on overdue runs is for lost events."""
    world = calm_world(run_count=2)
    world.start("t1")
    live(world, 1)
    swept = sweep(
        lab="traindyno",
        services=world.lab.services,
        executions=world.executions,
        now=LATER,
        pace=UNHURRIED,
    )
    assert swept == Swept(open=1, overdue=0, left=0, stopped=0)


def test_a_job_with_a_task_given_up_is_stopped_once() -> None:
    world = calm_world(run_count=4)
    world.start("t1")
    (name,) = world.lab.jobs.jobs
    for _ in range(2):
        world.record({"Error": "States.Timeout", "Cause": ""})
    assert world.lab.jobs.stopped == [name]
    world.lab.jobs.end(name, "Stopped")
    world.finish(name)
    assert {result.outcome for result in result_of(world).values()} == {Outcome.TIMED_OUT}


def test_a_job_ending_while_its_runs_are_recorded_is_not_forgotten() -> None:
    """The task gave up, and the job's end is described after its row was read."""
    world = calm_world(run_count=2)
    world.start("t1")
    (name,) = world.lab.jobs.jobs
    written = Container(world, name).write(world.left, 2)
    world.lab.objects.contents |= {f"{world.prefix}{key}": text for key, text in written.items()}
    world.lab.jobs.end(name, "Completed")
    note_stop = world.lab.attempts.note_stop

    def ending(job_name: str, outcome: Outcome) -> bool:
        world.finish(name)
        return note_stop(job_name, outcome)

    world.lab.attempts.note_stop = ending  # type: ignore[method-assign]
    world.record({"Error": "States.Timeout", "Cause": ""})
    results = result_of(world).values()
    assert {result.outcome for result in results} == {Outcome.COMPLETED}
    assert sum(result.billable_seconds or 0 for result in results) == 300


def test_a_failed_run_shows_the_end_of_its_own_log(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The runs of a job write into one log, and others come after the one that failed."""
    world = World(random.Random(0), run_count=2, failing=1.0)
    world.start("t1")
    said = {
        run.run_id: [f"{run.run_id} begins", *["epoch"] * 50, "ValueError: no"]
        for run in world.job.runs
    }
    for number, (run_id, lines) in enumerate(said.items()):
        path = tmp_path / f"{number}.log"
        path.write_text("\n".join(lines))
        RunOutput(path, run_id).finish()
    name = list(world.lab.jobs.jobs)[-1]
    world.lab.logs.write(f"{name}/algo-1-1", capfdbinary.readouterr().out.decode().splitlines(), 0)
    live(world, 2)
    for run_id, result in record_all(world).items():
        assert result.log_tail == tuple(said[run_id][-40:])


@pytest.mark.parametrize(("failed_host", "shown"), [("algo-2", "algo-2"), (None, "algo-1")])
def test_a_run_failed_on_one_of_several_hosts_shows_the_log_of_this_host(
    failed_host: str | None, shown: str
) -> None:
    """The host that wrote last was ended by the parent of the other."""
    training = {"instance": "ml.g5.xlarge", "instance_count": 3, "strategy": "ddp"}
    world = World(random.Random(0), run_count=2, changes={"training": training})
    world.start("t1")
    name = list(world.lab.jobs.jobs)[-1]
    written = written_job(name, hosts=3)
    for run in world.job.runs:
        written.carry(run.run_id, 20, exit_code=1, failed_host=failed_host)
        for age, host in enumerate(("algo-3", "algo-2", "algo-1")):
            lines = [f"[{shared.run_id}] {host} says" for shared in world.job.runs]
            world.lab.logs.write(f"{name}/{host}-1790000000", lines, age)
    world.lab.objects.contents |= {
        f"{world.prefix}{key}": text for key, text in written.files.items()
    }
    world.lab.jobs.end(name, "Completed")
    world.finish(name)
    assert [result.log_tail for result in record_all(world).values()] == [(f"{shown} says",)] * 2


def test_further_runs_of_a_job_are_recorded_with_their_trial_and_share() -> None:
    world = World(random.Random(0), run_count=2, failing=0.0, again=1.0)
    world.start("token-1")
    live(world, 2)
    results = record_all(world)
    first = [run.run_id for run in world.job.runs]
    assert [*results] == sorted([*first, *world.further])
    assert len(world.further) == 4
    assert {result.run.trial: result.run.block for result in results.values()} == {
        1: "1.1",
        2: "1+.1",
        3: "1+.2",
    }
    assert {result.run.job_id for result in results.values()} == {world.job.job_id}
    assert all(
        result.attempts[0].share.own_seconds == 20
        for result in results.values()
        if result.attempts[0].share
    )
    assert len({result.attempts[0].job_name for result in results.values()}) == 1


def test_a_hopeless_run_is_recorded_with_its_bound_and_not_tried_again() -> None:
    world = calm_world(run_count=3)
    first, *behind = (run.run_id for run in world.job.runs)
    world.outpaced = tuple(behind)
    world.start("t1")
    name = list(world.lab.jobs.jobs)[-1]
    world.lab.logs.write(f"{name}/algo-1-1", [f"[{run_id}] epoch" for run_id in behind], 0)
    live(world, 3)
    assert answers(world) == ["success"]
    results = record_all(world)
    outcomes = {run_id: result.outcome for run_id, result in results.items()}
    assert outcomes == {first: Outcome.COMPLETED, **dict.fromkeys(behind, Outcome.OUTPACED)}
    for run_id in behind:
        assert (results[run_id].message, results[run_id].log_tail) == (
            "at least 50 % slower than another run of its job",
            (),
        )
        bound = results[run_id].bound
        assert bound is not None
        assert (bound.by, bound.least_ratio) == (first, 1.5)
    assert world.open_jobs == []


def test_a_jobs_document_is_there_before_its_job_and_the_same_for_each_attempt() -> None:
    world = calm_world(run_count=2)
    key = job_document_key(EXECUTION, world.job.job_id)
    documents = []
    start = world.lab.jobs.start

    def starting(request: Mapping[str, Any]) -> None:
        documents.append(world.lab.objects.contents[key])
        start(request)

    world.lab.jobs.start = starting  # type: ignore[method-assign]
    for token in ("t1", "t2"):
        world.start(token)
        live(world, 1)
    assert len(documents) == 2
    assert len(set(documents)) == 1
    assert [run["run_id"] for run in json.loads(documents[0])["runs"]] == [
        run.run_id for run in world.job.runs
    ]


def test_a_shared_job_is_one_row_and_one_reservation_and_no_row_of_a_run() -> None:
    world = calm_world(run_count=3)
    world.start("t1")
    (row,) = world.lab.attempt_rows.values()
    assert row.owner == world.job
    assert world.lab.money.exposed_usd == row.reserved_usd
    assert world.lab.run_rows == {}
    (kept,) = world.lab.shared_jobs.list_all(EXECUTION)
    assert (kept.owner_id, kept.jobs) == (world.job.job_id, frozenset({row.job_name}))


def test_the_next_attempt_knows_the_jobs_ended_at_their_limit_by_the_service() -> None:
    world = calm_world(run_count=3, max_attempts=5)
    world.start("t1")
    cut_off = live(world, 1, "Stopped", secondary="MaxRuntimeExceeded")
    world.start("t2")
    live(
        world,
        0,
        "Failed",
        reason="InternalServerError: We encountered an internal error. Please try again.",
    )
    world.start("t3")
    (document,) = (
        json.loads(text)
        for key, text in world.lab.objects.contents.items()
        if "/jobs/" in key and key.endswith(".json")
    )
    assert document["cut_off"] == [cut_off]
