"""How the time and the bill of a shared job are divided among its runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.jobs.attempt import Attempt, trained_seconds
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.job_journal import JobJournal
from traindyno.core.jobs.run_share import RunShare, divide_seconds

# SageMaker gives whole seconds, and its clock and the host's differ.
CLOCK_SECONDS = 5.0
_ENDING = (JobPhaseName.UPLOADING, JobPhaseName.STOPPING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One run's part of the job. Parts add up to the job; None is unknown, as it is for the job."""

    share: RunShare
    billable_seconds: float | None
    training_seconds: float | None


def divide_job(
    job: Attempt, journal: JobJournal, *, began: Sequence[str], waiting: Sequence[str], in_progress: str | None
) -> dict[str, Part]:
    """A run's weight is its own time and an equal part of the rest; a spot discount is the same for all.

    ``began``: the runs that the job worked for, in order. If there are none, those that were ``waiting`` share equally.
    """
    sharing = began or waiting
    times = _divide_time(job, journal, began)
    shares = [
        RunShare(
            own_seconds=times.own.get(run_id, 0.0),
            start_seconds=times.start,
            end_seconds=times.end,
            place=place,
            runs=len(sharing),
            has_begun=bool(began),
            was_in_progress=run_id == in_progress,
        )
        for place, run_id in enumerate(sharing, start=1)
    ]
    weights = [round((share.own_seconds + times.rest / len(shares)) * 1000) for share in shares]
    parts = zip(shares, _billed(job, weights), _trained(job, weights), strict=True)
    return {
        run_id: Part(share=share, billable_seconds=billed, training_seconds=trained)
        for run_id, (share, billed, trained) in zip(sharing, parts, strict=True)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """``rest`` of the job is the time that no run has for itself: ``start``, ``end``, between the runs, and
    throw-away runs, which are billed and which no run of the whole workload would have.
    """

    own: Mapping[str, float]
    start: float
    end: float
    rest: float


def _divide_time(job: Attempt, journal: JobJournal, began: Sequence[str]) -> _Times:
    """Runs whose own time is unknown, as the job or an interruption cut them off, have what is left, equally."""
    whole = trained_seconds(job) or 0.0
    known = _known_times(journal, began, most_seconds=whole if job.training_seconds is not None else float("inf"))
    unknown = [run_id for run_id in began if run_id not in known]
    rest = max(0.0, whole - sum(known.values()))
    end = min(rest, sum(job.phase_seconds.get(name, 0.0) for name in _ENDING) + (journal.end_seconds or 0.0))
    warm_up = min(rest - end, journal.warm_up_seconds)
    if not unknown:
        between = max(0.0, (journal.runs_seconds or 0.0) - sum(known.values())) + journal.thrown_away_seconds
        return _Times(own=known, start=max(0.0, rest - end - between - warm_up), end=end, rest=rest)
    start = min(rest - end, _start_seconds(job, journal))
    thrown_away = min(rest - end - start, journal.thrown_away_seconds)
    left = (rest - end - start - thrown_away) / len(unknown)
    own = {**known, **dict.fromkeys(unknown, left)}
    return _Times(own=own, start=max(0.0, start - warm_up), end=end, rest=start + thrown_away + end)


def _known_times(journal: JobJournal, began: Sequence[str], *, most_seconds: float) -> dict[str, float]:
    """Code in a job can write the ends of its runs: times that exceed the job's are refused, one or all together."""
    limit = most_seconds + CLOCK_SECONDS
    found = {run_id: seconds for run_id in began if (seconds := _known_seconds(journal, run_id)) is not None}
    possible = {run_id: seconds for run_id, seconds in found.items() if seconds <= limit}
    return possible if sum(possible.values()) <= limit else {}


def _known_seconds(journal: JobJournal, run_id: str) -> float | None:
    """None if no parent saw the run both begin and end."""
    if run_id in journal.interrupted:
        return None
    end = journal.ends.get(run_id)
    return end.own_seconds if end else journal.spent_seconds.get(run_id)


def _start_seconds(job: Attempt, journal: JobJournal) -> float:
    """The time before the parent's first line needs the clock of the service too: the job's phases limit it."""
    before = 0.0
    if journal.started_at is not None and job.started_at is not None:
        before = min(max(0.0, journal.started_at - job.started_at), job.phase_seconds.get(JobPhaseName.TRAINING, 0.0))
    return job.phase_seconds.get(JobPhaseName.DOWNLOADING, 0.0) + before + (journal.start_seconds or 0.0)


def _billed(job: Attempt, weights: Sequence[int]) -> Sequence[float | None]:
    return [None] * len(weights) if job.billable_seconds is None else divide_seconds(job.billable_seconds, weights)


def _trained(job: Attempt, weights: Sequence[int]) -> Sequence[float | None]:
    """In proportion to what is billed, so that the billed share of a run's time is the job's."""
    whole = trained_seconds(job)
    if whole is None:
        return [None] * len(weights)
    billed = divide_seconds(job.billable_seconds or whole, weights)
    total = sum(billed)
    return [whole * each / total if total else whole / len(weights) for each in billed]
