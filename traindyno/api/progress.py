"""Follow an execution to its end: what is read of it, again and again, and the lines that say
it.
"""

import queue
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError

from traindyno.api.execution_state import Leader, RunningJob, State, read_state
from traindyno.api.lab_target import LabTarget
from traindyno.aws.account import settings_problem
from traindyno.aws.executions import UNSUCCESSFUL, Execution
from traindyno.core.costs.quantity_text import (
    estimate_text,
    number_text,
    seconds_text,
    usd_text,
)
from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.outcome import SUCCESSES, outcome_text
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.measurement.run_phases import phase_text
from traindyno.core.run.tokens import label_of
from traindyno.store.owners import PreparationSummary

SHOWN_FROM_SECONDS = 1.0
# A reading takes 0.1 s of a core: one each second is 5 % of two cores, and makes the run that is
# measured contended.
LOCAL_POLL_SECONDS = 3.0
# A script has two minutes after SIGTERM; the upload follows.
STOP_SECONDS = 600.0
AWS_POLL_SECONDS = 10.0
# With the longest pause and a request or two, a line comes at least every 30 s.
QUIET_SECONDS = 18.0
STALL_SECONDS = 20.0
FindStall = Callable[[], str | None]


def ended_line(
    number: int, planned: int | None, summary: RunSummary, trials: int | None = None
) -> str:
    """Line about a run that has ended.

    For example ``3/10 compiled · batch 4, trial 1: completed, 12.3 samples/s``. The run after all
    ``trials`` is the long one.
    """
    rate = summary.samples_per_second if summary.outcome in SUCCESSES else None
    speed = f", {number_text(rate)} samples/s" if rate is not None else ""
    why = f": {summary.message}" if summary.message else ""
    label = summary.cell_label or summary.cell_id
    outcome = outcome_text(summary.outcome, summary.message)
    busy = " (the host was busy with other work)" if summary.is_contended else ""
    place = f"{number}" if planned is None else f"{number}/{planned}"
    run = "long run" if trials is not None and summary.trial > trials else f"trial {summary.trial}"
    return f"{place} {label}, {run}: {outcome}{speed}{busy}{why}"


def prepared_line(preparation_id: str, summary: PreparationSummary) -> str:
    seconds = summary.billable_seconds
    billed = f", billed {number_text(seconds)} s" if seconds is not None else ""
    return (
        f"{label_of(preparation_id)} {preparation_id.rpartition('-')[2]}: {summary.outcome}{billed}"
    )


def state_line(state: State) -> str:
    """Everything about the execution in one line, for a log."""
    parts = [_doing(state), f"{_count(state)} runs", _spent(state)]
    if state.left_seconds is not None:
        parts.append(f"about {seconds_text(state.left_seconds)} left")
    if state.leader:
        parts.append(f"leader: {_leader(state.leader)}")
    elapsed = (
        "starting"
        if state.elapsed_seconds < SHOWN_FROM_SECONDS
        else seconds_text(state.elapsed_seconds)
    )
    return f"{elapsed}: {'; '.join(parts)}"


def state_rows(state: State) -> Iterator[tuple[str, str]]:
    """The same in rows, for a display that is drawn again in place."""
    yield "runs", _count(state)
    for lane in state.lanes:
        yield "lane", f"{lane.instance}: {lane.running} running, {lane.ended} ended"
    for job in described_jobs(state):
        yield "running", _job(job, state.max_steps)
    if not state.jobs:
        yield "doing", _doing(state)
    left = "" if state.left_seconds is None else f", about {seconds_text(state.left_seconds)} left"
    yield "time", f"{seconds_text(state.elapsed_seconds)}{left}"
    yield "cost", _spent(state)
    if state.leader:
        yield "leader", _leader(state.leader)


def _count(state: State) -> str:
    """Number of ended runs, and of planned ones.

    For example ``2 of 4``, in a race ``2 of at most 4``; ``0`` until they are planned.
    """
    most = "at most " if state.is_race else ""
    return (
        f"{state.runs_ended}"
        if state.runs_planned is None
        else f"{state.runs_ended} of {most}{state.runs_planned}"
    )


def described_jobs(state: State) -> list[RunningJob]:
    return [job for job in state.jobs if job.job_phase is not None]


def _doing(state: State) -> str:
    described = described_jobs(state)
    if state.preparing:
        return "; ".join([state.preparing, *(job.wait for job in described if job.wait)])
    if not described:
        return "planning" if not state.runs_ended else "between runs"
    more = len(state.jobs) - 1
    return _job(described[0], state.max_steps) + (f" (and {more} more)" if more else "")


def _job(job: RunningJob, max_steps: int | None) -> str:
    return f"{job.label}: {_activity(job, max_steps)}, {seconds_text(job.seconds)}"


def _activity(job: RunningJob, max_steps: int | None) -> str:
    if job.wait:
        return job.wait
    if job.job_phase is not JobPhaseName.TRAINING:
        return "unknown" if job.job_phase is None else job.job_phase.value
    if job.step is not None:
        return (
            f"training, step {job.step}{f' of {max_steps}' if job.step <= (max_steps or 0) else ''}"
        )
    return f"training, {phase_text(job.phase)}" if job.phase else "training"


def _spent(state: State) -> str:
    cap = "" if state.max_usd is None else f" of {usd_text(state.max_usd)}"
    return f"spent {usd_text(state.spent_usd)}{cap}"


def _leader(leader: Leader) -> str:
    estimate = leader.estimate
    text = usd_text if leader.is_cost else seconds_text
    if estimate.interval is None:
        return f"{leader.label}, {text(estimate.mean)} for the whole workload (one trial)"
    known = estimate_text(estimate.mean, estimate.interval.low, estimate.interval.high, text)
    return f"{leader.label}, {known} for the whole workload"


class CloudUnreachable(TraindynoError):
    """The lab does not answer; its executions may still be running."""


@dataclass(frozen=True, slots=True)
class NoProgress:
    """The execution makes no progress; ``reason`` says why."""

    reason: str


def follow(target: LabTarget, execution_id: str, display: "Display") -> Execution:
    """Returns when the execution has ended; one that was stopped or failed, when its jobs have
    ended and their runs are recorded, for which it waits ``STOP_SECONDS`` at most. Interrupting it
    leaves the execution running.
    """
    ended_at = None
    seconds = LOCAL_POLL_SECONDS if target.is_local else AWS_POLL_SECONDS

    observations = observe(lambda: read_state(target, execution_id), target.find_stall, seconds)
    with display:
        for seen in observations:
            display.update(seen)
            if not isinstance(seen, State) or seen.execution.is_running:
                continue
            ended_at = ended_at or time.monotonic()
            is_late = time.monotonic() - ended_at > STOP_SECONDS
            if seen.execution.status not in UNSUCCESSFUL or is_late or target.find_ended():
                return seen.execution
            if not any(target.services.attempts.list_open(execution_id)):
                return seen.execution
    raise AssertionError("an execution is observed until it has ended")


def observe(
    read: Callable[[], State], find_stall: FindStall, seconds: float
) -> Iterator[State | NoProgress]:
    """Yields states at least ``seconds`` apart, and NoProgress if for 20 s no state was read, or
    none differed and the cloud has a reason.

    Reading takes at most a tenth of the time: the rows of thousands of runs take seconds to read.
    """
    looked_at = time.monotonic()
    position = None
    while True:
        began = time.monotonic()
        reading = _Reading(read)
        while (state := reading.wait(STALL_SECONDS)) is None:
            yield NoProgress(
                find_stall() or f"the lab has not answered for {time.monotonic() - began:.0f} s"
            )
        if isinstance(state, BotoCoreError):
            raise CloudUnreachable(
                f"the lab does not answer: {find_stall() or settings_problem(state) or state}"
            ) from state
        if isinstance(state, BaseException):
            raise state
        yield state
        if state.position != position:
            looked_at = time.monotonic()
            position = state.position
        elif time.monotonic() - looked_at > STALL_SECONDS:
            looked_at = time.monotonic()
            if reason := find_stall():
                yield NoProgress(reason)
        time.sleep(max(seconds, 9 * (time.monotonic() - began)))


class _Reading:
    """One reading in a separate thread: a request to a service that does not answer takes minutes
    to fail.
    """

    def __init__(self, read: Callable[[], State]) -> None:
        self._read = read
        self._answer: queue.Queue[State | BaseException] = queue.Queue()
        threading.Thread(target=self._run, name="progress", daemon=True).start()

    def wait(self, seconds: float) -> State | BaseException | None:
        try:
            return self._answer.get(timeout=seconds)
        except queue.Empty:
            return None

    def _run(self) -> None:
        try:
            self._answer.put(self._read())
        except BaseException as error:  # noqa: BLE001 -- the waiting thread raises it
            self._answer.put(error)


@dataclass
class Display(AbstractContextManager["Display", None]):
    """Display that says each ended run and preparation once; ``told`` holds the ids that were said
    already, ``told_in_jobs`` those of runs whose job had not ended.
    """

    say: Callable[[str], None]
    told: set[str] = field(default_factory=set)
    told_in_jobs: set[str] = field(default_factory=set)

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, seen: State | NoProgress) -> None:
        if isinstance(seen, NoProgress):
            self.tell(f"no progress: {seen.reason}")
            return
        for run_id in sorted(seen.ended.keys() - self.told):
            self.told.add(run_id)
            number = len(self.told & seen.ended.keys())
            self.tell(ended_line(number, seen.runs_planned, seen.ended[run_id], seen.trials))
        for run_id in sorted(seen.ended_in_jobs.keys() - self.told_in_jobs - self.told):
            self.told_in_jobs.add(run_id)
            self.tell(f"{seen.ended_in_jobs[run_id]}: ended; its figures follow when its job ends")
        for run_id in sorted(seen.prepared.keys() - self.told):
            self.told.add(run_id)
            self.tell(prepared_line(run_id, seen.prepared[run_id]))
        self.show(seen)

    def tell(self, line: str) -> None:
        self.say(line)

    @abstractmethod
    def show(self, state: State) -> None:
        """Show a state that was read."""


class PlainDisplay(Display):
    """Display that says a line at least every 30 s."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(say)
        self._told_at = float("-inf")
        self._has_told_preparing = False

    def tell(self, line: str) -> None:
        super().tell(line)
        self._told_at = time.monotonic()

    def show(self, state: State) -> None:
        if state.preparing and not self._has_told_preparing:
            self._has_told_preparing = True
            self.tell(state.preparing)
        elif time.monotonic() - self._told_at >= QUIET_SECONDS and state.execution.is_running:
            self.tell(self.line(state))

    def line(self, state: State) -> str:
        return state_line(state)
