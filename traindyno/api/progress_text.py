"""The text of the progress display: a line for each ended run, and the state in one line or as rows."""

from collections.abc import Iterator

from traindyno.api.execution_state import Leader, RunningJob, State
from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.suite.preparation import label_of
from traindyno.core.verdict.cell_trials import MEASURED_OUTCOMES
from traindyno.store.owners import PreparationSummary

SHOWN_FROM_SECONDS = 1.0


def ended_line(number: int, planned: int | None, summary: RunSummary) -> str:
    """``3/10 compiled · batch 4, trial 1: completed, 12.3 samples/s``."""
    rate = summary.samples_per_second if summary.outcome in MEASURED_OUTCOMES else None
    speed = f", {number_text(rate)} samples/s" if rate is not None else ""
    why = f": {summary.message}" if summary.message else ""
    label = summary.cell_label or summary.cell_id
    outcome = summary.outcome.replace("_", " ")
    busy = " (the host was busy with other work)" if summary.is_contended else ""
    place = f"{number}" if planned is None else f"{number}/{planned}"
    return f"{place} {label}, trial {summary.trial}: {outcome}{speed}{busy}{why}"


def prepared_line(preparation_id: str, summary: PreparationSummary) -> str:
    seconds = summary.billable_seconds
    billed = f", billed {number_text(seconds)} s" if seconds is not None else ""
    return f"{label_of(preparation_id)} {preparation_id.rpartition('-')[2]}: {summary.outcome}{billed}"


def state_line(state: State) -> str:
    """Everything about the execution in one line, for a log."""
    parts = [_doing(state), f"{_count(state)} runs", _spent(state)]
    if state.left_seconds is not None:
        parts.append(f"about {seconds_text(state.left_seconds)} left")
    if state.leader:
        parts.append(f"leader: {_leader(state.leader)}")
    elapsed = "starting" if state.elapsed_seconds < SHOWN_FROM_SECONDS else seconds_text(state.elapsed_seconds)
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
    """``2 of 4``, in a race ``2 of at most 4``; ``0`` until they are planned."""
    most = "at most " if state.is_race else ""
    return f"{state.runs_ended}" if state.runs_planned is None else f"{state.runs_ended} of {most}{state.runs_planned}"


def described_jobs(state: State) -> list[RunningJob]:
    return [job for job in state.jobs if job.job_phase is not None]


def _doing(state: State) -> str:
    if state.preparing:
        return state.preparing
    described = described_jobs(state)
    if not described:
        return "planning" if not state.runs_ended else "between runs"
    more = len(state.jobs) - 1
    return _job(described[0], state.max_steps) + (f" (and {more} more)" if more else "")


def _job(job: RunningJob, max_steps: int | None) -> str:
    return f"{job.label}: {_activity(job, max_steps)}, {seconds_text(job.seconds)}"


def _activity(job: RunningJob, max_steps: int | None) -> str:
    if job.job_phase is not JobPhaseName.TRAINING:
        return "unknown" if job.job_phase is None else job.job_phase.value
    if job.step is not None:
        return f"training, step {job.step}{f' of {max_steps}' if max_steps is not None else ''}"
    return f"training, {job.phase.replace('_', ' ')}" if job.phase else "training"


def _spent(state: State) -> str:
    cap = "" if state.max_usd is None else f" of {usd_text(state.max_usd)}"
    return f"spent {usd_text(state.spent_usd)}{cap}"


def _leader(leader: Leader) -> str:
    found = leader.estimate
    text = usd_text(found.mean) if leader.is_cost else seconds_text(found.mean)
    if found.interval is None:
        return f"{leader.label}, {text} for the whole workload (one trial)"
    half_width = (found.interval.high - found.interval.low) / 2
    share = half_width / found.mean
    # Two trials that differ much have an interval that says nothing.
    spread = share_text(share) if share < 1 else "unknown"
    return f"{leader.label}, {text} ± {spread} for the whole workload"
