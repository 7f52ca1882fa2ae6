"""The attempts of one run of a shared job, each with its share of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from traindyno.core.errors import RunsLeft
from traindyno.core.jobs.attempt import (
    FAULT_ERRORS,
    LAST_OUTCOMES,
    Attempt,
    RunShare,
    divide_seconds,
    trained_seconds,
)
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.journal import JobJournal
from traindyno.core.jobs.outcome import FAULTS, OWN_FAILURES, Outcome
from traindyno.core.jobs.run_end import RunEnd

# SageMaker gives whole seconds, and its clock and the host's differ.
CLOCK_SECONDS = 5.0
_ENDING = (JobPhaseName.UPLOADING, JobPhaseName.STOPPING)
STARTING = JobPhaseName.STARTING.value
INTERRUPTED = JobPhaseName.INTERRUPTED.value
END_MISSING = (
    "The job completed, but the end of this run is not in S3, or its files are not as the end says."
)
# How a run's end is classified: its outcome and its message.
Classify = Callable[[RunEnd], tuple[Outcome, str | None]]
# What ends a job while one of its runs is in progress, and says nothing of the others.
_OF_RUN_IN_PROGRESS = OWN_FAILURES | {Outcome.KILLED}
# However many runs end in each.
MOST_ATTEMPTS = 100
# Somebody ended the job, and no further attempt is wanted.
STOPS = (Outcome.STOPPED_BY_USER, Outcome.COST_STOPPED)


def divide_job(
    job: Attempt,
    journal: JobJournal,
    *,
    began: Sequence[str],
    waiting: Sequence[str],
    in_progress: str | None,
) -> dict[str, Attempt]:
    """Each run's part of the job. Parts add up to the job; None is unknown, as it is for the job.

    A run's weight is its own time and an equal part of the rest; a spot discount is the same for
    all.

    ``began``: the runs that the job worked for, in order. If there are none, all that were
    ``waiting`` share equally.
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
            was_in_progress=run_id == in_progress,
        )
        for place, run_id in enumerate(sharing, start=1)
    ]
    weights = [round((share.own_seconds + times.rest / len(shares)) * 1000) for share in shares]
    unknown = [None] * len(weights)
    billed = (
        unknown if job.billable_seconds is None else divide_seconds(job.billable_seconds, weights)
    )
    return {
        run_id: replace(job, share=share, billable_seconds=paid, training_seconds=trained)
        for run_id, share, paid, trained in zip(
            sharing, shares, billed, _trained(job, weights), strict=True
        )
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Division of a job's time.

    ``rest`` is the time that no run has for itself: ``start``, ``end``, between the runs, and
    throw-away runs, which are billed and which no run of the whole workload would have.
    """

    own: Mapping[str, float]
    start: float
    end: float
    rest: float


def _divide_time(job: Attempt, journal: JobJournal, began: Sequence[str]) -> _Times:
    """Divide the job's time among its runs.

    Runs whose own time is unknown, as the job or an interruption cut them off, get equal parts of
    what is left.
    """
    whole = trained_seconds(job) or 0.0
    # Code in a job can write the ends of its runs: times that exceed the job's are refused, one or
    # all together.
    limit = (whole if job.training_seconds is not None else float("inf")) + CLOCK_SECONDS
    seconds_by_run = {
        run_id: seconds
        for run_id in began
        if (seconds := _known_seconds(journal, run_id)) is not None
    }
    possible = {run_id: seconds for run_id, seconds in seconds_by_run.items() if seconds <= limit}
    known = possible if sum(possible.values()) <= limit else {}
    unknown = [run_id for run_id in began if run_id not in known]
    rest = max(0.0, whole - sum(known.values()))
    end = min(
        rest,
        sum(job.phase_seconds.get(name, 0.0) for name in _ENDING) + (journal.end_seconds or 0.0),
    )
    warm_up = min(rest - end, journal.warm_up_seconds)
    if not unknown:
        between = (
            max(0.0, (journal.runs_seconds or 0.0) - sum(known.values()))
            + journal.thrown_away_seconds
        )
        return _Times(own=known, start=max(0.0, rest - end - between - warm_up), end=end, rest=rest)
    start = min(rest - end, _start_seconds(job, journal))
    thrown_away = min(rest - end - start, journal.thrown_away_seconds)
    left = (rest - end - start - thrown_away) / len(unknown)
    own = {**known, **dict.fromkeys(unknown, left)}
    return _Times(own=own, start=max(0.0, start - warm_up), end=end, rest=start + thrown_away + end)


def _known_seconds(journal: JobJournal, run_id: str) -> float | None:
    """Seconds of a run; None if no parent saw the run both begin and end."""
    if run_id in journal.interrupted:
        return None
    end = journal.ends.get(run_id)
    return end.own_seconds if end else journal.spent_seconds.get(run_id)


def _start_seconds(job: Attempt, journal: JobJournal) -> float:
    """The time before the parent's first line needs the clock of the service too: the job's phases
    limit it.
    """
    before = 0.0
    if journal.started_at is not None and job.started_at is not None:
        before = min(
            max(0.0, journal.started_at - job.started_at),
            job.phase_seconds.get(JobPhaseName.TRAINING, 0.0),
        )
    return (
        job.phase_seconds.get(JobPhaseName.DOWNLOADING, 0.0)
        + before
        + (journal.start_seconds or 0.0)
    )


def _trained(job: Attempt, weights: Sequence[int]) -> Sequence[float | None]:
    """Training time of a run, in proportion to its billed time, so that the billed share is the
    job's.
    """
    whole = trained_seconds(job)
    if whole is None:
        return [None] * len(weights)
    billed = divide_seconds(job.billable_seconds or whole, weights)
    total = sum(billed)
    return [whole * weight / total if total else whole / len(weights) for weight in billed]


def attempts_of_run(
    run_id: str,
    jobs: Sequence[tuple[Attempt, JobJournal | None]],
    *,
    planned: Sequence[str],
    outcome_of: Classify,
) -> tuple[Attempt, ...]:
    """One for each job that worked for the run, and one for the last job if the run did not end
    before it.

    ``jobs``: all attempts of the shared job, in order, each with its journal, if it left one.
    ``planned``: its runs, in order. The shares of all runs add up to what each job was billed.
    """
    attempts_of = []
    waiting = list(planned)
    end: RunEnd | None = None
    for number, (job, journal) in enumerate(jobs, start=1):
        told = journal or JobJournal(job_name=job.job_name)
        began, in_progress = _runs_of(job, told, waiting, planned)
        # If the end of the last run reached S3 late, no run waits for the next job, which is paid
        # all the same.
        parts = divide_job(
            job, told, began=began, waiting=waiting or planned, in_progress=in_progress
        )
        is_left_over = number == len(jobs) and run_id in waiting
        end = told.ends.get(run_id, end)
        if run_id in parts or run_id in told.ends or is_left_over:
            part = replace(
                parts.get(run_id) or _nothing(job), phase_seconds=_phases(job, told, run_id)
            )
            part = _with_end(part, end, outcome_of)
            has_begun = run_id in began or run_id in told.probed
            is_of_another = end is None and told.has_worked and not has_begun
            attempts_of.append(_of_another(part) if is_of_another else part)
        waiting = [run_id for run_id in waiting if run_id not in told.ends]
    return tuple(attempts_of)


def _runs_of(
    job: Attempt, journal: JobJournal, waiting: Sequence[str], planned: Sequence[str]
) -> tuple[list[str], str | None]:
    """The runs that the job worked for, in order, and the one in progress at its end.

    Damaged names are left out.
    """
    unseen = [
        run_id for run_id, end in journal.ends.items() if run_id not in journal.began and end.place
    ]
    named = [*journal.began, *sorted(unseen, key=lambda run_id: journal.ends[run_id].place)]
    began = [run_id for run_id in named if run_id in planned]
    open_runs = [run_id for run_id in began if run_id not in journal.ends]
    if open_runs:
        return began, open_runs[-1]
    if job.error not in FAULT_ERRORS and job.outcome not in FAULTS:
        return began, None
    # A fault hit the next run before its first line was uploaded.
    turn = next(
        (run_id for run_id in waiting if run_id not in {*began, *journal.ends, *journal.left}), None
    )
    return [*began, turn] if began and turn else began, turn


def _nothing(job: Attempt) -> Attempt:
    share = RunShare(own_seconds=0.0, start_seconds=0.0, end_seconds=0.0, place=0, runs=0)
    nothing = None if job.billable_seconds is None else 0.0
    return replace(job, share=share, billable_seconds=nothing, training_seconds=nothing)


def _phases(job: Attempt, journal: JobJournal, run_id: str) -> dict[str, float]:
    """The job's, with one start; interruptions, and the starts after them, are of the runs that
    they cut off.
    """
    suffered = journal.interrupted.count(run_id)
    count = journal.restarts
    phases = dict(job.phase_seconds)
    if count and STARTING in phases:
        phases[STARTING] *= (1 + suffered) / (1 + count)
    if count and INTERRUPTED in phases:
        phases[INTERRUPTED] *= suffered / count
    return {name: seconds for name, seconds in phases.items() if seconds or name != INTERRUPTED}


def _with_end(part: Attempt, end: RunEnd | None, outcome_of: Classify) -> Attempt:
    if end is not None:
        outcome, message = outcome_of(end)
        return replace(
            part,
            outcome=outcome,
            error=None,
            message=message,
            ended_at=end.ended_at,
            bound=end.bound,
            batch=end.batch,
        )
    if part.outcome is Outcome.COMPLETED:
        return replace(part, outcome=Outcome.INTERNAL_ERROR, message=END_MISSING)
    return part


def _of_another(part: Attempt) -> Attempt:
    """Message of a run that did not begin in the job: another one may have ended it."""
    if part.outcome not in _OF_RUN_IN_PROGRESS:
        return part
    message = f"not started: its job ended before its turn ({part.outcome}: {part.message})"
    return replace(part, outcome=Outcome.INTERNAL_ERROR, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What the job's runs have reached when one of its attempts has ended."""

    #: The runs that have not ended in any attempt.
    left: Sequence[str]
    runs: int
    #: Whether a run, a probe of its batch or a throw-away run began in this attempt.
    began: bool
    #: Whether a run ended in this attempt.
    advanced: bool


def is_last_attempt(number: int, *, idle: int, max_attempts: int) -> bool:
    """Whether no further attempt is allowed.

    ``idle`` counts the attempts in which no run has ended, this one included. The others don't
    count against the limit.
    """
    return idle >= max_attempts or number >= MOST_ATTEMPTS


def shared_end(
    end: Attempt, progress: JobProgress, *, is_last: bool, stopped_for: Outcome | None
) -> Attempt:
    """The attempt as its job ended, with what follows for the job.

    ``stopped_for``: why the lab stopped it.
    """
    if not progress.left:
        return replace(end, outcome=Outcome.COMPLETED, error=None)
    if (is_last and not progress.advanced) or end.number >= MOST_ATTEMPTS:
        return _without_next(end, progress)
    if end.error is not None:
        return end
    completed = end.outcome is Outcome.COMPLETED
    if stopped_for is not None and completed:
        return replace(end, outcome=stopped_for)
    fails_again = not progress.began and not completed  # what fails before the first run begins
    if stopped_for is not None or end.outcome in STOPS or fails_again:
        return end
    cut_off = end.outcome is Outcome.TIMED_OUT
    return replace(
        end,
        outcome=None,
        error=RunsLeft.__name__,
        message=_left_text(end, progress),
        was_cut_off=cut_off,
    )


def _without_next(end: Attempt, progress: JobProgress) -> Attempt:
    errors = {error.__name__: outcome for error, outcome in LAST_OUTCOMES.items()}
    if end.error is not None:
        return replace(end, outcome=errors[end.error])
    if end.outcome is Outcome.COMPLETED:
        return replace(end, outcome=Outcome.INTERNAL_ERROR, message=_left_text(end, progress))
    return end


def _left_text(end: Attempt, progress: JobProgress) -> str:
    about = f"{end.outcome}: {end.message}" if end.message else str(end.outcome)
    return f"{len(progress.left)} of the job's {progress.runs} runs had not ended ({about})"
