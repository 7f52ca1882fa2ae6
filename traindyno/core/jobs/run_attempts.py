"""The attempts of one run of a shared job, each with its share of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from traindyno.core.jobs.attempt import FAULT_ERRORS, FAULTS, Attempt
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.job_journal import JobJournal
from traindyno.core.jobs.job_shares import Part, divide_job
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import RunEnd
from traindyno.core.jobs.run_share import RunShare

STARTING, INTERRUPTED = JobPhaseName.STARTING.value, JobPhaseName.INTERRUPTED.value
END_MISSING = "The job completed, but the end of this run is not in S3, or its files are not as the end says."
# How a run's end is classified: its outcome and its message.
Classify = Callable[[RunEnd], tuple[Outcome, str | None]]


def attempts_of_run(
    run_id: str,
    jobs: Sequence[tuple[Attempt, JobJournal | None]],
    *,
    planned: Sequence[str],
    outcome_of: Classify,
) -> tuple[Attempt, ...]:
    """One for each job that worked for the run, and one for the last job if the run did not end before it.

    ``jobs``: all attempts of the shared job, in order, each with its journal, if it left one. ``planned``: its runs,
    in order. The shares of all runs add up to what each job was billed.
    """
    found = []
    waiting = list(planned)
    end: RunEnd | None = None
    for number, (job, journal) in enumerate(jobs, start=1):
        told = journal or JobJournal(job_name=job.job_name)
        began, in_progress = _runs_of(job, told, waiting, planned)
        # If the end of the last run reached S3 late, no run waits for the next job, which is paid all the same.
        parts = divide_job(job, told, began=began, waiting=waiting or planned, in_progress=in_progress)
        is_left_over = number == len(jobs) and run_id in waiting
        end = told.ends.get(run_id, end)
        if run_id in parts or run_id in told.ends or is_left_over:
            part, phases = parts.get(run_id) or _nothing(job), _phases(job, told, run_id)
            found.append(_attempt(job, end, part, phases, outcome_of))
        waiting = [each for each in waiting if each not in told.ends]
    return tuple(found)


def _runs_of(
    job: Attempt, journal: JobJournal, waiting: Sequence[str], planned: Sequence[str]
) -> tuple[list[str], str | None]:
    """The runs that the job worked for, in order, and the one in progress at its end. Damaged names are left out."""
    unseen = [run_id for run_id, end in journal.ends.items() if run_id not in journal.began and end.place]
    named = [*journal.began, *sorted(unseen, key=lambda run_id: journal.ends[run_id].place)]
    began = [run_id for run_id in named if run_id in planned]
    open_runs = [run_id for run_id in began if run_id not in journal.ends]
    if open_runs:
        return began, open_runs[-1]
    if job.error not in FAULT_ERRORS and job.outcome not in FAULTS:
        return began, None
    # A fault hit the next run before its first line was uploaded.
    turn = next((each for each in waiting if each not in {*began, *journal.ends, *journal.left}), None)
    return [*began, turn] if began and turn else began, turn


def _nothing(job: Attempt) -> Part:
    share = RunShare(own_seconds=0.0, start_seconds=0.0, end_seconds=0.0, place=0, runs=0, has_begun=False)
    unknown = job.billable_seconds is None
    return Part(share=share, billable_seconds=None if unknown else 0.0, training_seconds=None if unknown else 0.0)


def _phases(job: Attempt, journal: JobJournal, run_id: str) -> dict[str, float]:
    """The job's, with one start; interruptions, and the starts after them, are of the runs that they cut off."""
    suffered, count = journal.interrupted.count(run_id), journal.restarts
    phases = dict(job.phase_seconds)
    if count and STARTING in phases:
        phases[STARTING] *= (1 + suffered) / (1 + count)
    if count and INTERRUPTED in phases:
        phases[INTERRUPTED] *= suffered / count
    return {name: seconds for name, seconds in phases.items() if seconds or name != INTERRUPTED}


def _attempt(
    job: Attempt, end: RunEnd | None, part: Part, phases: Mapping[str, float], outcome_of: Classify
) -> Attempt:
    mine = replace(
        job,
        share=part.share,
        billable_seconds=part.billable_seconds,
        training_seconds=part.training_seconds,
        phase_seconds=phases,
    )
    if end is not None:
        outcome, message = outcome_of(end)
        return replace(
            mine,
            outcome=outcome,
            error=None,
            message=message,
            ended_at=end.ended_at,
            bound=end.bound,
            batch=end.batch,
        )
    if job.outcome is Outcome.COMPLETED:
        return replace(mine, outcome=Outcome.INTERNAL_ERROR, message=END_MISSING)
    return mine
