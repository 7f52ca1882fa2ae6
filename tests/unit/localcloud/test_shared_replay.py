"""A simulated shared job: its runs take the time of jobs of their own, and whatever ends it,
nothing ended is lost.
"""

import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import (
    Engine,
    SecondaryStatus,
    TrainingJob,
    Transition,
    new_job,
)
from localcloud.sagemaker_service.jobs.job_work import read_work
from localcloud.sagemaker_service.replay.shared_session import (
    SharedSession,
    as_begun,
    next_session,
    sessions_of,
)
from localcloud.sagemaker_service.replay.shared_work import SharedWork, read_shared_work
from localcloud.sagemaker_service.replay.simulated_log import training_seconds
from localcloud.sagemaker_service.replay.simulation import shared_files
from localcloud.sagemaker_service.replay.trace import Trace
from tests.unit.parent.shared_job import SharedJob, children_of, is_alive, wait_until
from tests.unit.parent.test_race import FAST, LEVEL, LONG_SECONDS, RACE, SLOW, race, racing
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import unprepared_document, unprepared_suite
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal import JobJournal, ended_runs, read_job_journal
from traindyno.core.jobs.journal_format import (
    DEADLINE,
    EXITED,
    JOBS_DIED,
    JOURNAL,
    RUN_SKIPPED,
    TIME_LIMIT,
)
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.content import StepLog
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.choices import Compiler, Search
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.failure_reasons import outcome_of
from traindyno.sagemaker.job_document import job_document
from traindyno.sagemaker.request import build_training_job_request
from traindyno.sagemaker.shared_request import build_shared_job_request

TRACE = Trace(name="trace", step_seconds=0.5, load_seconds=3.0)
HOSTS = 2
STEPS = 40
EVERY = 10
BEGAN_MS = 1_000_000
Files = dict[str, bytes]
COMPILED_IS_SLOW = (TRACE, replace(TRACE, match={"compiler": "inductor"}, step_seconds=1.0))
SPEEDS = {"best": FAST, "level": LEVEL, "behind": SLOW}
AGAIN = [f"{cell}-{number}" for number in (1, 2) for cell in ("best", "level")]
Events = list[tuple[str, str | None, str | None]]


def make_suite(**limits: Any) -> Suite:
    given = unprepared_document()
    return unprepared_suite(
        training={**given["training"], "instance_count": HOSTS},
        measurement={"trials": 2, "max_steps": STEPS, "checkpoint_every_steps": EVERY},
        limits={**given["limits"], **limits},
    )


def shared_job(suite: Suite) -> Job:
    runs = trial_runs("execution-1", suite.cells, [1, 2])
    return Job(execution_id="execution-1", job_id="j1a2b3c4d-1", runs=runs)


def service_job(request: dict[str, Any]) -> TrainingJob:
    return new_job(request, arn="arn", engine=Engine.REPLAY, now_ms=0)


def simulated(
    faults: FaultInjector, suite: Suite | None = None, traces: Sequence[Trace] = (TRACE,)
) -> tuple[TrainingJob, SharedWork]:
    suite = suite or make_suite()
    job = shared_job(suite)
    own = service_job(build_shared_job_request(job, suite, attempt=1, settings=SETTINGS))
    document = job_document(job, suite, SETTINGS)
    work = read_shared_work(own, document, traces, faults)
    return replace(own, simulated_runs=tuple(run.run_id for run in job.runs)), work


def written(job: TrainingJob, work: SharedWork, sessions: Sequence[SharedSession]) -> Files:
    """What is in S3 once each session's files were written at its end."""
    files: Files = {}
    for count in range(1, len(sessions) + 1):
        files |= dict(shared_files(job, work, sessions[:count]))
    return files


def journal_of(job: TrainingJob, files: Files) -> JobJournal:
    return read_job_journal(files, job_name=job.name, host_count=job.instance_count)


def skipped(files: Files, run_id: str) -> bool:
    """Whether each host's parent says so."""
    said = f'"{RUN_SKIPPED}", '.encode()
    lines = (
        line
        for key, body in files.items()
        if key.startswith(f"{JOURNAL}/")
        for line in body.splitlines()
    )
    return sum(said in line and run_id.encode() in line for line in lines) == HOSTS


def log_of(job: TrainingJob, files: Files, run_id: str) -> StepLog:
    prefix = f"{run_id}/step_log/"
    logs = {
        key.removeprefix(prefix): body.decode()
        for key, body in files.items()
        if key.startswith(prefix)
    }
    return read_step_log({name: text.splitlines(keepends=True) for name, text in logs.items()})


def test_each_run_takes_the_time_of_a_job_of_its_own_without_its_start(
    faults: FaultInjector,
) -> None:
    suite = make_suite()
    job, work = simulated(faults, suite)
    session = next_session(job, work, (), start_ms=BEGAN_MS)
    files = written(job, work, [session])
    journal = journal_of(job, files)
    assert journal.began == tuple(run.run_id for run in shared_job(suite).runs)
    at_ms = BEGAN_MS
    for run, span in zip(shared_job(suite).runs, session.spans, strict=True):
        alone = service_job(build_training_job_request(run, suite, attempt=1, settings=SETTINGS))
        of_trace = (TRACE, replace(alone, name=span.run.job.name), read_work(alone))
        seconds = training_seconds(*of_trace, first_step=0, last_step=STEPS)
        assert span.begin_ms == at_ms
        assert span.end_ms - span.begin_ms == pytest.approx(seconds * 1000, abs=1)
        assert outcome_of(journal.ends[run.run_id]) == (Outcome.COMPLETED, None)
        assert journal.ends[run.run_id].own_seconds == pytest.approx(seconds, abs=0.001)
        (logged,) = log_of(job, files, run.run_id).sessions
        assert [len(process.steps) for process in logged.processes] == [STEPS] * HOSTS
        at_ms = span.end_ms
    assert session.closed_ms == at_ms


def test_whenever_instances_are_lost_every_run_ends_exactly_once(faults: FaultInjector) -> None:
    job, work = simulated(faults)
    whole_ms = (next_session(job, work, (), start_ms=0).closed_ms or 0) + 1
    for cut_ms in [0, 1, *range(777, whole_ms, 3001), whole_ms - 2, whole_ms]:
        first = training(BEGAN_MS, BEGAN_MS + cut_ms)
        second = training(5 * BEGAN_MS, None)
        restarted = replace(job, transitions=(first, second))
        sessions = sessions_of(restarted, work, second, until_ms=5 * BEGAN_MS + whole_ms)
        before, after = (session.ended for session in sessions)
        assert not before & after, cut_ms
        assert before | after == set(job.simulated_runs), cut_ms
        files = written(job, work, sessions)
        assert ended_runs(written(job, work, sessions[:1]), host_count=HOSTS) == before
        assert ended_runs(files, host_count=HOSTS) == before | after
        journal = journal_of(job, files)
        assert set(journal.ends) == before | after
        assert {run_id for run_id in job.simulated_runs if skipped(files, run_id)} == before
        cut_off = [
            run_id
            for run_id in (span.run.run_id for span in sessions[0].spans)
            if run_id not in before
        ]
        assert list(journal.interrupted) == cut_off, cut_ms
        for run_id in cut_off:
            done = sessions[0].spans[-1].stretch().next_step
            resumed = log_of(job, files, run_id).sessions[-1].processes[0].steps
            assert [step.step for step in resumed] == [*range(done // EVERY * EVERY, STEPS)]


def training(start_ms: int, end_ms: int | None) -> Transition:
    return Transition(status=SecondaryStatus.TRAINING, start_ms=start_ms, end_ms=end_ms, message="")


def test_a_run_during_two_job_deaths_is_not_started_again(faults: FaultInjector) -> None:
    job, work = simulated(faults)
    first, second, *later = job.simulated_runs
    files: Files = {}
    for attempt, left in enumerate(
        (job.simulated_runs, job.simulated_runs[1:], job.simulated_runs[1:]), start=1
    ):
        job = as_begun(replace(job, name=f"job-a{attempt}"), work, files)
        assert job.simulated_runs == left
        whole = next_session(job, work, (), start_ms=BEGAN_MS)
        assert job.doomed_runs == ((second,) if attempt == 3 else ())
        (struck,) = (span for span in whole.spans if span.run.run_id == second)
        dies = {} if attempt == 3 else {"until_ms": struck.end_ms - 1000}
        files |= written(job, work, [next_session(job, work, (), start_ms=BEGAN_MS, **dies)])
    assert not any(key.startswith(f"{second}/step_log/job-a3/") for key in files)
    journal = journal_of(job, files)
    assert journal.began == tuple(later)
    assert {run_id: outcome_of(end)[0] for run_id, end in journal.ends.items()} == {
        second: Outcome.INTERNAL_ERROR,
        **dict.fromkeys(later, Outcome.COMPLETED),
    }
    assert journal.ends[second].reason == JOBS_DIED
    assert ended_runs(files, host_count=HOSTS) == {first, second, *later}


@pytest.mark.parametrize("fault", ["out_of_memory", "killed_process"])
def test_a_fault_of_a_process_ends_its_run_only(faults: FaultInjector, fault: str) -> None:
    victim = simulated(faults)[0].simulated_runs[1]
    faults.replace({"named": [{"name_contains": victim, "fault": fault}]})
    job, work = simulated(faults)
    journal = journal_of(job, written(job, work, [next_session(job, work, (), start_ms=BEGAN_MS)]))
    outcomes = {run_id: outcome_of(end)[0] for run_id, end in journal.ends.items()}
    expected = Outcome.OUT_OF_MEMORY if fault == "out_of_memory" else Outcome.KILLED
    assert outcomes == {
        run_id: expected if run_id == victim else Outcome.COMPLETED for run_id in job.simulated_runs
    }


def test_a_run_ended_by_its_own_limit_is_recorded_as_such(faults: FaultInjector) -> None:
    job, work = simulated(faults, make_suite(max_run_seconds=10))
    session = next_session(job, work, (), start_ms=0)
    assert [(span.reason, span.end_ms - span.begin_ms) for span in session.spans] == [
        (TIME_LIMIT, 10_000)
    ] * 4
    assert set(map(outcome_of, journal_of(job, written(job, work, [session])).ends.values())) == {
        (Outcome.TIMED_OUT, "still running after 10 seconds")
    }


def test_the_jobs_deadline_leaves_runs_and_ends_only_a_lone_one(
    faults: FaultInjector,
) -> None:
    # A tenth of the limit is kept for the job's end; each run takes 26 s, and the download before
    # them 45 s.
    for limit, reasons in (
        (140, [EXITED, EXITED, EXITED]),
        (120, [EXITED, EXITED]),
        (70, [TIME_LIMIT]),
        (40, [TIME_LIMIT]),
    ):
        job, work = simulated(faults, make_suite(max_job_seconds=limit))
        session = next_session(job, work, (), start_ms=0)
        assert [span.reason for span in session.spans if span.reason] == reasons
        journal = journal_of(job, written(job, work, [session]))
        assert journal.left == dict.fromkeys(job.simulated_runs[len(reasons) :], DEADLINE)
        assert (session.closed_ms or 0) <= max(limit * 900 - 45_000, 0)


def test_a_hopeless_run_ends_as_under_the_parent(faults: FaultInjector) -> None:
    suite = replace(make_suite(), search=Search.RACE)
    job, work = simulated(faults, suite, COMPILED_IS_SLOW)
    is_slow = {
        run.run_id: run.cell.settings.compiler is Compiler.INDUCTOR
        for run in shared_job(suite).runs
    }
    session = next_session(job, work, (), start_ms=BEGAN_MS)
    files = written(job, work, [session])
    journal = journal_of(job, files)
    fast = [run_id for run_id in job.simulated_runs if not is_slow[run_id]]
    behind = [
        span
        for span in session.spans
        if is_slow[span.run.run_id] and span.begin_ms > BEGAN_MS + 30_000
    ]
    assert behind
    assert {
        run_id for run_id, end in journal.ends.items() if outcome_of(end)[0] is Outcome.OUTPACED
    } == {span.run.run_id for span in behind}
    for span in behind:
        end = journal.ends[span.run.run_id]
        assert end.bound is not None
        assert end.bound.by in fast
        assert 1.5 < end.bound.least_ratio < 2.2
        (logged,) = log_of(job, files, span.run.run_id).sessions
        assert [len(process.steps) for process in logged.processes] == [end.bound.steps + 2] * HOSTS
        assert end.bound.steps < STEPS - 2
    # The throw-away run: 3 s to load and 7 steps, of 40.
    first = session.spans[0]
    least = 3 + 7 * (1.0 if is_slow[first.run.run_id] else 0.5)
    assert 0.9 * least < journal.warm_up_seconds < 0.6 * (first.end_ms - first.begin_ms) / 1000
    assert journal.start_seconds == pytest.approx(journal.warm_up_seconds)


def racing_job(
    root: Path, first: Mapping[str, Any] = MappingProxyType({}), slow: str = AGAIN[-1]
) -> SharedJob:
    """Each cell may run twice more, "level" slowly at last.

    ``first``: what it does otherwise in its first job.
    """

    def run(run_id: str, cell: str) -> dict[str, Any]:
        seconds = SLOW if run_id == slow else SPEEDS[cell]
        given = racing(run_id, seconds, waits=0.6, first=dict(first) if run_id == "level" else {})
        return {**given, "hyperparameters": {"seconds": seconds}}

    again = [
        {**run(f"{cell}-{number}", cell), "first": cell} for number in (1, 2) for cell in SPEEDS
    ]
    return race(root, *(run(cell, cell) for cell in SPEEDS), limits={**RACE, "again": again})


def replayed(
    document: dict[str, Any],
    faults: FaultInjector,
    name: str = "job-a1",
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> tuple[TrainingJob, SharedWork]:
    """The document's job in the replay engine, at the speeds of its runs.

    ``files``: what earlier jobs have left.
    """
    request = build_shared_job_request(
        shared_job(unprepared_suite()), unprepared_suite(), attempt=1, settings=SETTINGS
    )
    own = replace(service_job(request), name=name)
    traces = [
        replace(TRACE, match={"seconds": seconds}, steps=20, warmup_factor=1, step_seconds=seconds)
        for seconds in SPEEDS.values()
    ]
    work = read_shared_work(own, document, traces, faults)
    return as_begun(own, work, files), work


def events(job: TrainingJob, files: Files) -> Events:
    lines = [
        json.loads(line)
        for line in files[f"{JOURNAL}/{job.name}/{job.hosts[0]}.jsonl"].splitlines()
    ]
    return [(line["event"], line.get("run_id"), line.get("reason")) for line in lines]


def test_the_same_runs_begin_and_end_as_in_a_job_of_the_real_parent(
    faults: FaultInjector, tmp_path: Path
) -> None:
    """Its contenders run again. Nothing is left for a further attempt."""
    real = racing_job(tmp_path)
    files: Files = {}
    for name in ("job-a1", "job-a2"):
        assert real.carry(name)[0] == 0
        job, work = replayed(real.document(), faults, name, files)
        files |= written(job, work, [next_session(job, work, (), start_ms=BEGAN_MS)])
        assert events(job, files) == real.events(name)
    assert [run_id for event, run_id, _ in real.events() if event == "run_began"] == [
        *SPEEDS,
        *AGAIN,
    ]


def test_measurements_of_an_earlier_job_count_as_for_the_real_parent(
    faults: FaultInjector, tmp_path: Path
) -> None:
    real = racing_job(tmp_path, first={"waits": LONG_SECONDS})
    with real.start() as guard:
        wait_until(lambda: list((real.folder() / "level" / "step_log").glob("*/rank-*")))
        (parent,) = children_of(guard.pid)
        os.kill(parent, signal.SIGKILL)
        guard.wait(60)
        wait_until(lambda: not is_alive(parent))
    assert real.carry("job-a2")[0] == 0
    died, work = replayed(real.document(), faults)
    _, level, *_ = next_session(died, work, (), start_ms=BEGAN_MS).spans
    files = written(
        died, work, [next_session(died, work, (), start_ms=BEGAN_MS, until_ms=level.end_ms - 1000)]
    )
    job, work = replayed(real.document(), faults, "job-a2", files)
    files |= written(job, work, [next_session(job, work, (), start_ms=BEGAN_MS)])
    assert [events(died, files), events(job, files)] == [real.events(), real.events("job-a2")]
    assert {run_id for event, run_id, _ in real.events("job-a2") if event == "run_ended"} == {
        "level",
        "behind",
        *AGAIN,
    }


@pytest.mark.parametrize(("instance", "count"), [("local.cpu", 2), ("ml.g5.xlarge", 4)])
def test_a_contender_of_this_machine_runs_until_it_is_told_apart(
    instance: str, count: int, faults: FaultInjector, tmp_path: Path
) -> None:
    # of two runs: ln √(1.05 × 2.5) = 0.4825, and 4 × 0.12 × √(2 ÷ 2) = 0.48
    job, work = replayed(racing_job(tmp_path, slow=AGAIN[1]).document(), faults)
    request = json.loads(json.dumps(job.request))
    request["ResourceConfig"]["InstanceType"] = instance
    session = next_session(replace(job, request=request), work, (), start_ms=0)
    assert session.ended == {*SPEEDS, *AGAIN[:count]}
    assert session.left == ()


def test_contenders_cut_off_anywhere_end_once(faults: FaultInjector, tmp_path: Path) -> None:
    job, work = replayed(racing_job(tmp_path).document(), faults)
    whole_ms = (next_session(job, work, (), start_ms=0).closed_ms or 0) + 1
    for cut_ms in range(0, whole_ms, 511):
        first = training(BEGAN_MS, BEGAN_MS + cut_ms)
        second = training(5 * BEGAN_MS, None)
        restarted = replace(job, transitions=(first, second))
        sessions = sessions_of(restarted, work, second, until_ms=5 * BEGAN_MS + 2 * whole_ms)
        assert not sessions[0].ended & sessions[1].ended, cut_ms
        assert sessions[0].ended | sessions[1].ended == {*SPEEDS, *AGAIN}, cut_ms
        assert set(journal_of(restarted, written(job, work, sessions)).ends) == {*SPEEDS, *AGAIN}, (
            cut_ms
        )


def test_a_job_without_time_for_them_leaves_its_contenders(
    faults: FaultInjector, tmp_path: Path
) -> None:
    job, work = replayed(racing_job(tmp_path).document(), faults)
    whole = next_session(job, work, (), start_ms=0)
    work = replace(work, deadline_ms=whole.spans[len(SPEEDS)].end_ms + 1000)
    session = next_session(job, work, (), start_ms=0)
    assert session.ended == {*SPEEDS, AGAIN[0]}
    assert session.left == tuple(AGAIN[1:])
