"""What the parent process of a simulated shared job does: its runs one after another, in one session or several.

Everything follows from the job's document, the faults and the times of its statuses, so that it can be computed again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localcloud.sagemaker_service.jobs.job import SecondaryStatus, TrainingJob, Transition
from localcloud.sagemaker_service.replay.shared_work import SharedRun, SharedWork
from localcloud.sagemaker_service.replay.simulated_log import Stretch, write_stretch
from traindyno.core.jobs.journal_format import EXITED, JOBS_DIED, TIME_LIMIT

# Planned times are rounded to milliseconds.
ROUNDING_MS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One run in one session. ``reason``: why it ended; None if it was left, or cut off with its job. Without a
    ``place`` it did not begin.
    """

    run: SharedRun
    place: int | None
    first_step: int
    begin_ms: int
    end_ms: int
    reason: str | None

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
class Session:
    """One life of the parent. ``left``: runs for the next attempt. ``closed_ms``: its end; None if it was cut off."""

    start_ms: int
    skipped: tuple[str, ...]
    spans: tuple[Span, ...]
    left: tuple[str, ...] = ()
    closed_ms: int | None = None

    @property
    def ended(self) -> frozenset[str]:
        return frozenset(span.run.run_id for span in self.spans if span.reason is not None)

    @property
    def steps_to_resume_from(self) -> int:
        """Of the run that was cut off: those that its newest checkpoint has."""
        if not self.spans or self.spans[-1].reason is not None:
            return 0
        cut_off = self.spans[-1]
        return cut_off.run.work.steps_in_checkpoint(cut_off.stretch().next_step)


def sessions_of(job: TrainingJob, work: SharedWork, ending: Transition, *, until_ms: int) -> tuple[Session, ...]:
    """All sessions until ``until_ms``, at which the training ``ending`` ends. The job may have other ones before it."""
    trainings = [each for each in job.transitions if each.status is SecondaryStatus.TRAINING]
    before = [(each.start_ms, each.end_ms) for each in trainings if each.start_ms < ending.start_ms]
    times = [*((start, end) for start, end in before if end is not None), (ending.start_ms, until_ms)]
    sessions: list[Session] = []
    for start_ms, end_ms in times:
        sessions.append(next_session(job, work, sessions, start_ms=start_ms, until_ms=end_ms))
    return tuple(sessions)


def next_session(
    job: TrainingJob, work: SharedWork, before: Sequence[Session], *, start_ms: int, until_ms: int | None = None
) -> Session:
    """The session after those ``before``; ``until_ms``: when the job's instances end it, None for never."""
    ended = {run.run_id for run in work.runs} - {*job.simulated_runs}
    ended |= {run_id for session in before for run_id in session.ended}
    pending = [run for run in work.runs if run.run_id not in ended]
    first_step = before[-1].steps_to_resume_from if before else 0
    skipped = tuple(run.run_id for run in work.runs if run.run_id in ended)
    turns = _Turns(work=work, doomed=frozenset(job.doomed_runs), until_ms=until_ms)
    spans = list(turns.spans(pending, first_step=first_step, start_ms=start_ms))
    closed_ms = spans[-1].end_ms if spans else start_ms
    open_runs = tuple(run.run_id for run in pending[len(spans) - bool(spans and spans[-1].reason is None) :])
    if open_runs and until_ms is not None and closed_ms >= until_ms:
        return Session(start_ms=start_ms, skipped=skipped, spans=tuple(spans))
    return Session(start_ms=start_ms, skipped=skipped, spans=tuple(spans), left=open_runs, closed_ms=closed_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    work: SharedWork
    doomed: frozenset[str]
    until_ms: int | None

    def spans(self, pending: Sequence[SharedRun], *, first_step: int, start_ms: int) -> Iterator[Span]:
        """Ends with the run that is cut off or left. No run begins that would need longer than there is time."""
        deadline_ms = start_ms + self.work.deadline_ms
        now_ms, longest_ms, begun = start_ms, 0, 0
        for run in pending:
            is_late = begun > 0 and now_ms + longest_ms >= deadline_ms
            if run.run_id in self.doomed and not self._is_over(now_ms):
                yield _not_begun(run, now_ms)
                continue
            if is_late or self._is_over(now_ms):
                return
            first = 0 if begun else first_step
            end_ms, reason = _end(run, first, now_ms, deadline_ms, is_first=not begun)
            if self.until_ms is not None and end_ms > self.until_ms + ROUNDING_MS:
                end_ms, reason = self.until_ms, None
            begun += 1
            yield Span(run=run, place=begun, first_step=first, begin_ms=now_ms, end_ms=end_ms, reason=reason)
            if reason is None:
                return
            longest_ms, now_ms = max(longest_ms, end_ms - now_ms), end_ms

    def _is_over(self, now_ms: int) -> bool:
        return self.until_ms is not None and now_ms >= self.until_ms


def _not_begun(run: SharedRun, now_ms: int) -> Span:
    return Span(run=run, place=None, first_step=0, begin_ms=now_ms, end_ms=now_ms, reason=JOBS_DIED)


def _end(run: SharedRun, first_step: int, begin_ms: int, deadline_ms: int, *, is_first: bool) -> tuple[int, str | None]:
    """When and why the run ends; without a reason it is left at the job's deadline."""
    end_ms, reason = begin_ms + run.milliseconds(first_step), EXITED
    if run.longest_ms is not None and end_ms > begin_ms + run.longest_ms:
        end_ms, reason = begin_ms + run.longest_ms, TIME_LIMIT
    if end_ms <= deadline_ms:
        return end_ms, reason
    return max(deadline_ms, begin_ms), TIME_LIMIT if is_first else None
