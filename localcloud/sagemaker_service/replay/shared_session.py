"""What the parent process of a simulated shared job does: its runs one after another, in one
session or several.

Everything follows from the job's document, the faults and the times of its statuses, so that it can
be computed again.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from localcloud.sagemaker_service.jobs.job import SecondaryStatus, TrainingJob, Transition
from localcloud.sagemaker_service.replay.shared_work import SharedRun, SharedWork
from localcloud.sagemaker_service.replay.simulated_log import Stretch, step_seconds, write_stretch
from traindyno.core.jobs.journal import read_host_journal
from traindyno.core.jobs.journal_format import (
    ENDED,
    EXITED,
    JOBS_DIED,
    JOURNAL,
    MOST_DEATHS,
    OUTPACED,
    TIME_LIMIT,
)
from traindyno.core.jobs.run_end import OutpacedBound
from traindyno.figures.in_job.outpaced import MOST_STEPS, Pace, early_end, pace_of
from traindyno.figures.in_job.race import contenders_in_job
from traindyno.figures.in_job.run_scatter import run_scatter

# Planned times are rounded to milliseconds.
ROUNDING_MS = 1


def as_begun(job: TrainingJob, work: SharedWork, records: Mapping[str, bytes]) -> TrainingJob:
    """The job with what its earlier attempts did, by the records that they left.

    ``records`` has the journals and ends of all attempts by their keys.
    """
    ends = [
        json.loads(contents)
        for key, contents in sorted(records.items())
        if key.split("/")[1] == ENDED
    ]
    hosts = Counter((end["run_id"], end["job_name"]) for end in ends)
    whole = [end for end in ends if hosts[end["run_id"], end["job_name"]] >= job.instance_count]
    ended = {end["run_id"] for end in whole}
    return replace(
        job,
        simulated_runs=tuple(run.run_id for run in work.runs if run.run_id not in ended),
        doomed_runs=_doomed_runs(records, job),
        completed_runs={
            end["run_id"]: end["job_name"]
            for end in whole
            if (end["reason"], end["exit_code"]) == (EXITED, 0)
        },
    )


def _doomed_runs(records: Mapping[str, bytes], job: TrainingJob) -> tuple[str, ...]:
    """Simulated hosts write the same: the first one's journals tell."""
    deaths: Counter[str] = Counter()
    for key, contents in sorted(records.items()):
        folder, job_name, host, *_ = key.split("/")
        if folder == JOURNAL and host == f"{job.hosts[0]}.jsonl" and job_name != job.name:
            # A job's death cut off the run that its last session began.
            journal = read_host_journal(job_name, contents)
            last = journal.began[-1:] if journal.end_seconds is None else ()
            deaths.update(
                run_id
                for run_id in last
                if run_id not in journal.spent_seconds and run_id not in journal.left
            )
    return tuple(sorted(run_id for run_id, count in deaths.items() if count >= MOST_DEATHS))


def _steps_of(run: SharedRun, first_step: int = 0) -> list[float]:
    last_step = min(run.fate.last_step, first_step + MOST_STEPS)
    return list(
        islice(step_seconds(run.trace, run.job.name), first_step, max(first_step, last_step))
    )


def _samples_of(run: SharedRun) -> int:
    return (run.trace.samples_per_step or 0) * run.work.world_size or run.work.global_batch_size


def whole_pace(run: SharedRun) -> Pace | None:
    """Pace of a run that completed."""
    pace = pace_of(
        _steps_of(run), _samples_of(run), run.trace.load_seconds + run.trace.compile_seconds
    )
    pauses = run.trace.checkpoint_seconds + run.trace.evaluation_seconds
    return pace and pace._replace(longest_seconds=pace.longest_seconds + pauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One run in one session."""

    run: SharedRun
    #: The place among the session's runs; None if the run did not begin.
    place: int | None
    first_step: int
    begin_ms: int
    end_ms: int
    #: Why the run ended; None if it was left, or cut off with its job.
    reason: str | None
    bound: OutpacedBound | None = None

    @property
    def has_completed(self) -> bool:
        return self.reason == EXITED and not self.run.fate.has_failed

    def stretch(self) -> Stretch:
        return write_stretch(
            self.run.job,
            self.run.trace,
            self.run.work,
            start_ms=self.begin_ms,
            until_ms=self.end_ms,
            first_step=self.first_step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSession:
    """One life of the parent, the process that carries the runs of a job."""

    start_ms: int
    skipped: tuple[str, ...]
    spans: tuple[Span, ...]
    #: The runs for the next attempt.
    left: tuple[str, ...] = ()
    #: The end of the session; None if it was cut off.
    closed_ms: int | None = None
    #: The time of the throw-away run, if the session has one.
    warm_up_ms: int

    @property
    def ended(self) -> frozenset[str]:
        return frozenset(span.run.run_id for span in self.spans if span.reason is not None)

    @property
    def steps_to_resume_from(self) -> int:
        """Steps in the newest checkpoint of the run that was cut off."""
        if not self.spans or self.spans[-1].reason is not None:
            return 0
        cut_off = self.spans[-1]
        return cut_off.run.work.steps_in_checkpoint(cut_off.stretch().next_step)


def sessions_of(
    job: TrainingJob, work: SharedWork, ending: Transition, *, until_ms: int
) -> tuple[SharedSession, ...]:
    """All sessions until ``until_ms``, at which the training ``ending`` ends.

    The job may have other ones before it.
    """
    trainings = [
        transition
        for transition in job.transitions
        if transition.status is SecondaryStatus.TRAINING
    ]
    before = [
        (training.start_ms, training.end_ms)
        for training in trainings
        if training.start_ms < ending.start_ms
    ]
    times = [
        *((start, end) for start, end in before if end is not None),
        (ending.start_ms, until_ms),
    ]
    sessions: list[SharedSession] = []
    for start_ms, end_ms in times:
        sessions.append(next_session(job, work, sessions, start_ms=start_ms, until_ms=end_ms))
    return tuple(sessions)


def next_session(
    job: TrainingJob,
    work: SharedWork,
    before: Sequence[SharedSession],
    *,
    start_ms: int,
    until_ms: int | None = None,
) -> SharedSession:
    """The session that follows the sessions ``before``.

    Args:
        job: The training job.
        work: The runs of the job.
        before: The sessions that it had.
        start_ms: When the session starts.
        until_ms: When the job's instances are lost; None if they are not.
    """
    ended = {run.run_id for run in work.runs} - {*job.simulated_runs}
    ended |= {run_id for session in before for run_id in session.ended}
    pending = [run for run in work.runs if run.run_id not in ended and run.first is None]
    skipped = tuple(run.run_id for run in work.runs if run.run_id in ended)
    warm_up_ms = work.warm_up_milliseconds(pending[0]) if pending else 0
    # The name of a run's job draws its steps.
    completed = [
        replace(run, job=replace(run.job, name=f"{job.completed_runs[run.run_id]}/{run.run_id}"))
        for run in work.runs
        if run.run_id in job.completed_runs
    ]
    completed += [span.run for session in before for span in session.spans if span.has_completed]
    turns = _Turns(
        work=work,
        doomed=frozenset(job.doomed_runs),
        until_ms=until_ms,
        deadline_ms=start_ms + work.deadline_ms,
        completed=completed,
        now_ms=start_ms + warm_up_ms,
        first_step=before[-1].steps_to_resume_from if before else 0,
    )
    spans = [*turns.spans(pending)]
    if all(span.reason for span in spans) and len(spans) == len(pending):
        count = sum(run.first is None for run in work.runs)
        scatter = run_scatter(job.instance_type)
        contenders: list[str] = []
        for number, run in enumerate(work.runs[count:]):
            if number % count == 0:
                contenders = contenders_in_job(turns.paces(), scatter, 1 + number // count)
            if run.first in contenders and run.run_id not in ended:
                spans += turns.spans([run])
                pending.append(run)
    closed_ms = turns.now_ms
    open_runs = tuple(
        run.run_id for run in pending[sum(span.reason is not None for span in spans) :]
    )
    session = SharedSession(
        start_ms=start_ms, skipped=skipped, spans=tuple(spans), warm_up_ms=warm_up_ms
    )
    is_cut_off = bool(open_runs) and until_ms is not None and closed_ms >= until_ms
    return session if is_cut_off else replace(session, left=open_runs, closed_ms=closed_ms)


@dataclass(slots=True, kw_only=True)
class _Turns:
    """The runs of a session, one after another."""

    work: SharedWork
    doomed: frozenset[str]
    until_ms: int | None
    deadline_ms: int
    #: The runs by which others are judged.
    completed: list[SharedRun]
    now_ms: int
    #: The first step of the run that begins first.
    first_step: int
    longest_ms: int = 0
    begun: int = 0

    def spans(self, pending: Sequence[SharedRun]) -> Iterator[Span]:
        """Ends with the run that is cut off or left.

        No run begins that would need longer than there is time.
        """
        for run in pending:
            now_ms = self.now_ms
            is_late = self.begun > 0 and now_ms + self.longest_ms >= self.deadline_ms
            if run.run_id in self.doomed and not self._is_over(now_ms):
                yield Span(
                    run=run,
                    place=None,
                    first_step=0,
                    begin_ms=now_ms,
                    end_ms=now_ms,
                    reason=JOBS_DIED,
                )
                continue
            if is_late or self._is_over(now_ms):
                return
            first = 0 if self.begun else self.first_step
            self.begun += 1
            span = self._span(
                Span(
                    run=run,
                    place=self.begun,
                    first_step=first,
                    begin_ms=now_ms,
                    end_ms=now_ms,
                    reason=None,
                )
            )
            self.now_ms = span.end_ms
            yield span
            if span.reason is None:
                return
            self.completed += [run] if span.has_completed else []
            self.longest_ms = max(self.longest_ms, span.end_ms - now_ms)

    def paces(self) -> dict[str, list[Pace]]:
        """The paces of completed runs, by the first run of their cell; none without a race."""
        paces: dict[str, list[Pace]] = {}
        if self.work.race_samples is None:
            return paces
        for run in self.completed:
            pace = whole_pace(run)
            if pace is not None:
                paces.setdefault(run.first or run.run_id, []).append(pace)
        return paces

    def _span(self, begun: Span) -> Span:
        firsts = {run_id: paces[0] for run_id, paces in self.paces().items()}
        span = _ended(self.work, begun, firsts)
        if span.end_ms > self.deadline_ms:  # without a reason, the run is left
            end_ms = max(self.deadline_ms, span.begin_ms)
            reason = TIME_LIMIT if span.place == 1 else None
            span = replace(span, end_ms=end_ms, reason=reason, bound=None)
        if self.until_ms is not None and span.end_ms > self.until_ms + ROUNDING_MS:
            return replace(span, end_ms=self.until_ms, reason=None, bound=None)
        return span

    def _is_over(self, now_ms: int) -> bool:
        return self.until_ms is not None and now_ms >= self.until_ms


def _ended(work: SharedWork, span: Span, paces: Mapping[str, Pace]) -> Span:
    """The span as it would end if the job had no deadline."""
    run = span.run
    first_step = span.first_step
    behind = None
    if work.race_samples is not None and run.first is None:
        behind = early_end(
            _steps_of(run, first_step),
            _samples_of(run),
            paces,
            work.race_samples,
            run_scatter(run.job.instance_type),
        )
    last_step = first_step + behind.steps if behind else None
    overdue_ms = round(1000 * behind.overdue_seconds) if behind else 0
    ended = replace(
        span,
        end_ms=span.begin_ms + run.milliseconds(first_step, last_step=last_step) + overdue_ms,
        reason=OUTPACED if behind else EXITED,
        bound=OutpacedBound(**behind.bound) if behind else None,
    )
    if run.longest_ms is not None and ended.end_ms > span.begin_ms + run.longest_ms:
        return replace(span, end_ms=span.begin_ms + run.longest_ms, reason=TIME_LIMIT)
    return ended
