"""What a person sees while an execution runs, on a terminal and in a log."""

import io
import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tests.sentences import Snapshot
from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.core.jobs.written_jobs import written_job
from tests.unit.lab.shared_job_world import World
from tests.unit.lab.test_shared_jobs import live
from tests.unit.lab_in_memory import EXECUTION, PLANNED, MemoryExecutions
from tests.unit.planned_lab import empty_lab, take_in
from tests.unit.run_samples import known, make_summary
from tests.unit.step_log_samples import log_lines
from tests.unit.suites import script_document, unprepared_document
from traindyno.api import execution_state, progress
from traindyno.api.execution_state import RunningJob, State, find_leader, read_state
from traindyno.api.progress import (
    CloudUnreachable,
    NoProgress,
    PlainDisplay,
    ended_line,
    follow,
    observe,
    prepared_line,
    state_line,
    state_rows,
)
from traindyno.api.run_position import latest_position
from traindyno.aws.executions import Execution
from traindyno.callbacks.process import FORK
from traindyno.cli.display.progress import display_on, render_state
from traindyno.cli.output import Terminal
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.measured_run import LARGEST_FOREIGN_SHARE
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.runs import run_id_of
from traindyno.store.owners import PreparationRow, PreparationSummary

STARTED = 1_000.0
# What following uses of a local target.
LOCAL: Any = SimpleNamespace(is_local=True, find_stall=lambda: None)
SUMMARY = make_summary(
    cell_label="compiled · batch 4", samples_per_second=12.34, projected_seconds=100.0
)
JOB = RunningJob(
    label="batch 8",
    instance="local.cpu",
    job_phase=JobPhaseName.TRAINING,
    phase=None,
    step=12,
    seconds=9.0,
)


def state(
    *,
    ended: int = 0,
    jobs: tuple[RunningJob, ...] = (JOB,),
    status: str = "RUNNING",
    now: float = 1_060,
) -> State:
    rows = {f"r{number}": replace(SUMMARY, trial=number + 1) for number in range(ended)}
    execution = Execution(
        execution_id="demo",
        status=status,
        started_at=STARTED,
        ended_at=None,
        error=None,
        cause=None,
    )
    return State(
        execution=execution,
        runs_planned=4,
        ended=rows,
        jobs=jobs,
        preparations={},
        max_steps=20,
        spent_usd=Decimal("0.0021"),
        max_usd=Decimal(1),
        leader=find_leader(GoalKind.FASTEST, list(rows.values())),
        now=now,
    )


def test_a_waiting_job_says_the_reason_of_its_wait() -> None:
    wait = "waiting for the machine, behind r-hf, which has it since 20:41 UTC"
    job = RunningJob(
        label="eager",
        instance="local.cpu",
        job_phase=JobPhaseName.STARTING,
        phase=None,
        step=None,
        seconds=185.0,
        wait=wait,
    )
    waiting = state(jobs=(job,))
    assert f"eager: {wait}, 3 min 5 s" in state_line(waiting)
    assert ("running", f"eager: {wait}, 3 min 5 s") in [*state_rows(waiting)]
    assert waiting.position != state(jobs=(replace(job, wait=None),)).position


def test_the_phase_of_a_job_is_told_in_words() -> None:
    job = RunningJob(
        label="eager",
        instance="local.cpu",
        job_phase=JobPhaseName.TRAINING,
        phase=FORK,
        step=None,
        seconds=3.0,
        wait=None,
    )
    assert "eager: training, start of the process, 3.00 s" in state_line(state(jobs=(job,)))


def test_an_ended_run_is_named_by_its_cells_label(snapshot: Snapshot) -> None:
    snapshot(ended_line(1, 4, SUMMARY, 1))
    long = replace(SUMMARY, trial=2)
    snapshot(ended_line(2, 4, long, 1))
    failed = replace(
        SUMMARY, outcome=Outcome.OUT_OF_MEMORY, message="CUDA out of memory"
    )  # its steps had a rate
    busy = replace(SUMMARY, is_contended=True)
    assert ended_line(1, 4, busy).endswith("12.3 samples/s (the host was busy with other work)")
    snapshot(ended_line(2, None, failed))


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("it may run 60 s, and 45 s are left of limits.max_minutes 4", "time"),
        ("it may run 3600 s, and 45 s are left of limits.max_hours 2", "time"),
        ("its worst case is $1; $9.50 of limits.max_usd $10 is spent", "cost"),
        ("stopped by the lab: cost_stopped", "cost"),
    ],
)
def test_an_ended_run_says_the_reached_limit_of_the_suite(message: str, limit: str) -> None:
    stopped = replace(SUMMARY, outcome=Outcome.COST_STOPPED, message=message)
    assert f"trial 1: {limit} limit reached, 12.3 samples/s: {message}" in ended_line(1, 4, stopped)


def test_one_line_says_the_running_jobs_their_time_and_cost() -> None:
    line = state_line(state(ended=1))
    for part in (
        "60.0 s",
        "batch 8: training, step 12 of 20, 9.00 s",
        "1 of 4 runs",
        "spent $0.00210 of $1.00",
        "leader",
    ):
        assert part in line, (part, line)
    # One of four runs in 60 s: three more take 180 s.
    assert "about 3 min left" in line
    assert " left" not in state_line(state(ended=4))
    script = state_line(replace(state(jobs=(replace(JOB, step=86),)), max_steps=None))
    assert "batch 8: training, step 86, 9.00 s" in script
    race = state_line(replace(state(ended=1), is_race=True))
    assert "1 of at most 4 runs" in race
    assert " left" not in race


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("prepare-01234567", "data preparation 01234567: completed, billed 12.0 s"),
        ("stage-01234567", "model staging 01234567: completed, billed 12.0 s"),
    ],
)
def test_the_job_before_the_first_run_is_named_by_its_work(name: str, ended: str) -> None:
    row = PreparationRow(execution_id="demo", owner_id=name)
    assert "60.0 s: preparing the data;" in state_line(replace(state(), preparations={name: row}))
    summary = PreparationSummary(outcome=Outcome.COMPLETED, billable_seconds=12.0)
    over = replace(state(), preparations={name: replace(row, summary=summary)})
    assert over.preparing is None
    assert prepared_line(name, summary) == ended


def test_ended_runs_of_a_shared_job_count_before_they_are_recorded() -> None:
    """The first run is being recorded: its job is not over yet, and it has its result already."""
    line = state_line(replace(state(ended=1), ended_in_jobs=dict.fromkeys(["r0", "r1"], "")))
    assert "2 of 4 runs" in line
    assert "about 60.0 s left" in line
    assert replace(state(), ended_in_jobs={"r1": ""}).position != state().position


def test_between_two_attempts_of_a_job_its_ended_runs_are_still_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    world = World(random.Random(0), run_count=3, failing=0.0)
    target = replace(target_of(world.lab), executions=world.executions)
    world.start("t1")
    live(world, 2)
    seen = read_state(target, EXECUTION)
    assert (seen.runs_ended, len(seen.ended), seen.jobs) == (2, 0, ())
    said: list[str] = []
    display = PlainDisplay(said.append)
    for _ in range(2):
        display.update(seen)
    assert sorted(line for line in said if "its job" in line) == sorted(
        f"{run.cell.label}, trial {run.trial}: ended; its figures follow when its job ends"
        for run in world.job.runs[:2]
    )
    further = run_id_of(world.job.runs[0].cell.cell_id, 7)
    monkeypatch.setattr(execution_state, "ended_in", lambda *_: [further])
    # the job made this run itself
    label = world.job.runs[0].cell.label
    assert read_state(target, EXECUTION).ended_in_jobs == {further: f"{label}, trial 7"}


@pytest.mark.parametrize(("planned", "job"), [(6, "job 3 of 6"), (2, "job 3")])
def test_the_run_in_progress_has_its_place_in_its_job_and_the_job_its_number(
    monkeypatch: pytest.MonkeyPatch, planned: int, job: str
) -> None:
    """Two jobs are over: a shared one, and that of a run of its own.

    An earlier attempt says nothing of the place, and its ended runs count.
    """
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    world = World(random.Random(0), run_count=3)
    monkeypatch.setattr(execution_state, "TrainingJobs", lambda _: world.lab.jobs)
    target = replace(target_of(world.lab), executions=world.executions)
    monkeypatch.setattr(world.lab.executions, "find", lambda _: replace(PLANNED, job_count=planned))
    world.lab.table.write_all(
        [
            world.lab.runs.noting(EXECUTION, "alone-t1", "alone-t1-a1"),
            world.lab.shared_jobs.noting(EXECUTION, "j9-1", "j9-1-a1"),
        ]
    )
    world.start("t1")
    (row,) = world.lab.attempt_rows.values()
    world.lab.jobs.jobs[row.job_name] |= {
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Training",
    }
    (begun,) = read_state(target, EXECUTION).jobs
    assert begun.label == f"{job}, 3 runs"
    first, second, third = (run.run_id for run in world.job.runs)
    contents = world.lab.objects.contents
    contents[f"{world.prefix}{third}/step_log/an-earlier-one-a1/rank-00000.1.jsonl"] = b"{}"
    for name, run_id in ((row.job_name, first), ("an-earlier-one-a1", third)):
        written = written_job(name)
        written.carry(run_id, 20)
        contents |= {f"{world.prefix}{key}": text for key, text in written.files.items()}
        seen = read_state(target, EXECUTION)
        assert (seen.runs_ended, seen.jobs[0].label) == (
            1 if run_id == first else 2,
            f"{job}, 3 runs",
        )
    log = "".join(log_lines(step_seconds=[0.5] * 4)).encode()
    contents[f"{world.prefix}{second}/step_log/{row.job_name}/rank-00000.1.jsonl"] = log
    (running,) = read_state(target, EXECUTION).jobs
    assert (running.label, running.step) == (
        f"{world.job.runs[1].cell.label} ({job}, run 2 of 3)",
        3,
    )


@pytest.mark.parametrize(
    ("document", "max_steps"), [(script_document(), None), (unprepared_document(), 200)]
)
def test_the_number_of_steps_is_known_of_built_in_tasks_only(
    document: dict[str, Any], max_steps: int | None
) -> None:
    lab = empty_lab()
    take_in(lab, document)
    target = target_of(lab)
    target.executions.start(EXECUTION, document)
    assert isinstance(target.executions, MemoryExecutions)
    target.executions.end(EXECUTION, "SUCCEEDED")
    assert read_state(target, EXECUTION).max_steps == max_steps


def test_in_its_first_second_an_execution_is_starting() -> None:
    line = state_line(replace(state(jobs=(), now=STARTED + 0.06), runs_planned=None))
    assert line.startswith("starting: planning; 0 runs; ")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((1.0, 300.0), "17.3 s (interval unknown)"),
        ((1.0, 1.2), "1.10 s (344 ms to 3.49 s)"),
        ((1.0, 1.02), "1.01 s ± 12.6 %"),
    ],
)
def test_a_wide_interval_is_written_by_its_ends(seconds: tuple[float, ...], said: str) -> None:
    trials = [replace(SUMMARY, projected_seconds=second) for second in seconds]
    line = state_line(replace(state(ended=2), leader=find_leader(GoalKind.FASTEST, trials)))
    assert f"{said} for the whole workload" in line


def test_the_live_display_shows_runs_lanes_the_job_time_cost_and_the_leader() -> None:
    console = Terminal(file=io.StringIO(), width=120, force_terminal=False)
    console.print(render_state(state(ended=2)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for part in (
        "2 of 4",
        "local.cpu: 1 running, 2 ended",
        "batch 8: training, step 12 of 20",
        "$1",
        "compiled · batch 4",
    ):
        assert part in text, (part, text)


def test_the_leader_has_the_least_projected_time_and_its_interval() -> None:
    slow = [
        replace(SUMMARY, cell_label="slow", projected_seconds=seconds) for seconds in (200.0, 202.0)
    ]
    fast = [
        replace(SUMMARY, cell_label="fast", projected_seconds=seconds) for seconds in (100.0, 101.0)
    ]
    failed = replace(
        SUMMARY, cell_label="failed", outcome=Outcome.OUT_OF_MEMORY, projected_seconds=1.0
    )
    leader = known(find_leader(GoalKind.FASTEST, [*slow, *fast, failed]))
    assert leader.label == "fast"
    # The geometric mean of 100 and 101.
    assert leader.estimate.mean == pytest.approx(100.4988, rel=1e-5)
    assert leader.estimate.interval is not None
    assert find_leader(GoalKind.CHEAPEST, [*slow, *fast]) is None


def test_the_latest_step_or_phase_of_a_step_log_is_read_from_its_end() -> None:
    steps = "\n".join(json.dumps({"kind": "step", "step": number}) for number in (1, 2))
    assert latest_position(f'cut": 3}}\n{steps}\n{{"kind": "st') == (None, 2)
    assert latest_position(json.dumps({"kind": "phase", "name": "load"})) == ("load", None)
    assert latest_position("") == (None, None)


def shown(
    states: list[State | NoProgress],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_terminal: bool,
    step_seconds: float,
) -> str:
    """What is printed when the clock moves by ``step_seconds`` between two observations."""
    clock = {"now": 0.0}
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])

    def observations(*_: Any) -> Iterator[State | NoProgress]:
        for expected in states:
            clock["now"] += step_seconds
            yield expected

    monkeypatch.setattr(progress, "observe", observations)
    sink = io.StringIO()
    console = Terminal(file=sink, width=160, force_terminal=is_terminal, soft_wrap=True)
    follow(LOCAL, "demo", display_on(console))
    return sink.getvalue()


def test_without_a_terminal_a_line_comes_at_least_every_30_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states: list[State | NoProgress] = [state(now=1_000 + 10 * number) for number in range(1, 10)]
    text = shown(
        [*states, state(status="SUCCEEDED")], monkeypatch, is_terminal=False, step_seconds=10.0
    )
    # 90 s of nothing new, seen every 10 s.
    assert len([line for line in text.splitlines() if "step 12 of 20" in line]) >= 3


def test_a_stall_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(
        [NoProgress("MiniStack has ended"), state(status="SUCCEEDED")],
        monkeypatch,
        is_terminal=False,
        step_seconds=1,
    )
    assert "no progress: MiniStack has ended" in text


def test_on_a_terminal_ended_runs_stand_on_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states: list[State | NoProgress] = [
        state(ended=1),
        state(ended=2),
        state(ended=2, status="SUCCEEDED"),
    ]
    text = shown(states, monkeypatch, is_terminal=True, step_seconds=1)
    lines = [line for line in text.replace("\r", "\n").split("\n") if "samples/s" in line]
    assert len(lines) == 2
    for line in lines:
        assert "step 12 of 20" not in line
        assert line.rstrip().endswith("samples/s")


def read_for_ever() -> State:
    time.sleep(30)
    return state()


def test_a_reading_without_an_end_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "STALL_SECONDS", 0.05)
    events = observe(read_for_ever, lambda: "the service does not answer", 0.0)
    assert next(events) == NoProgress("the service does not answer")


def test_unchanging_states_are_a_stall_if_the_cloud_has_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "STALL_SECONDS", 0.02)
    events = observe(state, lambda: "process engine: database or disk is full", 0.01)
    assert any(isinstance(next(events), NoProgress) for _ in range(20))


def pass_time_by_sleeping(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The clock; a pause takes no time of the machine."""
    clock = {"now": 0.0}
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.update(now=clock["now"] + seconds))
    monkeypatch.setattr(progress._Reading, "wait", lambda reading, _: reading._read())
    return clock


def test_following_a_local_execution_makes_no_run_contended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This holds on two cores, also where the local cloud takes as much time again."""
    clock = pass_time_by_sleeping(monkeypatch)
    reading_seconds = 0.1
    readings = []

    class Counting(progress.Display):
        def show(self, state: State) -> None:
            clock["now"] += reading_seconds
            readings.append(clock["now"])

    monkeypatch.setattr(
        progress,
        "read_state",
        lambda *_: state(status="SUCCEEDED" if clock["now"] > 600 else "RUNNING"),
    )
    progress.follow(LOCAL, "demo", Counting(lambda _: None))
    assert len(readings) * reading_seconds / (2 * readings[-1]) < LARGEST_FOREIGN_SHARE / 2


def test_an_unreachable_lab_is_an_error_with_the_reason() -> None:
    def read() -> State:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:4566")

    with pytest.raises(CloudUnreachable, match="MiniStack of the local cloud has ended"):
        next(observe(read, lambda: "MiniStack of the local cloud has ended", 1.0))
