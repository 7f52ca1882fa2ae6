"""The cost and time of earlier runs of a suite's cells, from which the plan computes its
expectations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from traindyno.core.documents.plain import id_of, plain_values
from traindyno.core.jobs.outcome import TELLS_TIME, Outcome
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.measurement.stop_rule import steps_that_last
from traindyno.core.run.workload import workload_document
from traindyno.core.suite.choices import Task
from traindyno.core.suite.job_time import ENDING_SECONDS, IMAGE_SECONDS
from traindyno.core.suite.suite import Suite
from traindyno.figures.estimates import mean_of
from traindyno.figures.host_means import update_prior
from traindyno.figures.hosts import STATED_PRIORS, HostClass, HostPriors, host_class
from traindyno.figures.trials import Trial

WORK_ID_DIGITS = 16
Histories = Mapping[str, "CellHistory"]
# The settings that decide when a run stops, without max_steps and least_seconds: the difference in
# steps is computed instead.
DECIDES_LENGTH = ("stop_when", "evaluate", "evaluate_every_steps", "save_model")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run of an earlier execution, whose suite bounds it to ``max_steps``."""

    summary: RunSummary
    max_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellHistory:
    """Means over ``run_count`` earlier runs of this cell, converted to this suite's limits.

    The overhead is what a job has once, however many runs it carries; 0 where no earlier run shows
    it. ``trained_seconds``: of all steps of the shortest run that completed; 0 if unknown.
    """

    cell_id: str
    run_count: int
    billable_seconds: float
    seconds: float
    is_simulated: bool
    overhead_seconds: float = 0.0
    overhead_billable_seconds: float = 0.0
    trained_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedJob:
    billable_seconds: float
    seconds: float


def work_id_of(suite: Suite) -> str:
    """Id of a suite's work, equal for suites whose runs of a cell do the same work.

    File names, goals, limits and matrices may differ. A target is part of the work, because runs
    end there.
    """
    measurement = plain_values(suite.measurement)
    target = suite.goal.target
    added = _added_by_full_run(suite)
    content = {
        "workload": workload_document(suite.workload),
        "purchase": suite.purchase.value,
        **{name: measurement.get(name) for name in DECIDES_LENGTH},
        **({"added": added} if added else {}),
        **({"target": plain_values(target)} if target else {}),
    }
    return id_of(content, WORK_ID_DIGITS)


def _added_by_full_run(suite: Suite) -> list[str]:
    """Work that the suite's jobs do only because the full run does it; none for a script, which
    decides for itself.
    """
    if suite.workload.task is Task.SCRIPT:
        return []
    given, done = (
        plain_values(measurement) for measurement in (suite.measurement, suite.job_measurement)
    )
    return sorted(name for name in done if given.get(name) is None and done[name] is not None)


def learn_from(suite: Suite, past: Iterable[PastRun]) -> dict[str, CellHistory]:
    """What earlier runs of each cell show, by cell id. A cell without a usable run is left out."""
    by_cell: dict[str, list[PastRun]] = {}
    for run in past:
        if run.summary.outcome in TELLS_TIME and _added_seconds(run, suite) is not None:
            by_cell.setdefault(run.summary.cell_id, []).append(run)
    return {cell_id: _learn(cell_id, runs, suite) for cell_id, runs in by_cell.items()}


def learn_host_priors(past: Iterable[PastRun]) -> HostPriors | None:
    """How the speed of hosts differs, by class: from measured trials of one cell on several hosts,
    of any execution.

    None if earlier executions give no information about it. Simulated hosts give none about real
    ones.
    """
    alike: dict[HostClass, dict[str, list[Trial]]] = {}
    for run in (past_run.summary for past_run in past):
        if (
            run.outcome is Outcome.COMPLETED
            and run.hosts
            and run.mean_step_seconds
            and not run.is_simulated
        ):
            hosts = frozenset(run.hosts.split())
            cells = alike.setdefault(host_class(len(hosts), run.data_wait_share), {})
            cells.setdefault(run.cell_id, []).append(
                Trial(value=run.mean_step_seconds, hosts=hosts)
            )
    updated_priors = {
        kind: update_prior(
            list(alike.get(kind, {}).values()),
            source=f"{prior.source}, with earlier executions of this work",
            prior=prior,
        )
        for kind, prior in STATED_PRIORS.items()
    }
    if not any(updated_priors.values()):
        return None
    return {kind: updated or STATED_PRIORS[kind] for kind, updated in updated_priors.items()}


def _learn(cell_id: str, past: list[PastRun], suite: Suite) -> CellHistory:
    added = [_added_seconds(run, suite) or 0.0 for run in past]
    runs = [past_run.summary for past_run in past]
    times = [past_run.summary.time for past_run in past]
    longest_seconds = IMAGE_SECONDS + suite.limits.max_job_seconds + ENDING_SECONDS
    return CellHistory(
        cell_id=cell_id,
        run_count=len(runs),
        billable_seconds=fmean(
            min(
                max(0.0, (run.time.billable_seconds or 0.0) + more),
                float(min(max(1, run.attempts), suite.limits.max_attempts) * longest_seconds),
            )
            for run, more in zip(runs, added, strict=True)
        ),
        seconds=fmean(
            max(0.0, time.seconds + more) for time, more in zip(times, added, strict=True)
        ),
        is_simulated=any(run.is_simulated for run in runs),
        overhead_seconds=mean_of(time.overhead_seconds for time in times) or 0.0,
        overhead_billable_seconds=mean_of(time.overhead_billable_seconds for time in times) or 0.0,
        trained_seconds=min(
            (
                (run.steps or 0) * (run.mean_step_seconds or 0.0)
                for run in runs
                if run.outcome is Outcome.COMPLETED
            ),
            default=0.0,
        ),
    )


def expect_job(carried: Sequence[CellHistory]) -> ExpectedJob:
    """One job that carries a run of each of these: it has the largest of their overheads, once."""
    return ExpectedJob(
        billable_seconds=_with_one_overhead(
            [(history.billable_seconds, history.overhead_billable_seconds) for history in carried]
        ),
        seconds=_with_one_overhead(
            [(history.seconds, history.overhead_seconds) for history in carried]
        ),
    )


def _with_one_overhead(alone: Sequence[tuple[float, float]]) -> float:
    """Seconds of a job that carries all runs.

    ``alone`` has for each run the seconds of a job of its own, and the overhead in them.
    """
    return sum(max(0.0, whole - once) for whole, once in alone) + max(
        min(whole, once) for whole, once in alone
    )


def _added_seconds(past: PastRun, suite: Suite) -> float | None:
    """Seconds that this suite's steps add to a run, or save; None if unknown."""
    if past.summary.outcome is not Outcome.COMPLETED or suite.workload.task is Task.SCRIPT:
        return 0.0
    return _seconds_of_more_steps(past, suite)


def _seconds_of_more_steps(past: PastRun, suite: Suite) -> float | None:
    """Extra (or fewer) seconds if the number of steps changes; None if unknown.

    A run that set its own number had more than ``max_steps``.
    """
    run = past.summary
    max_steps = suite.measurement.max_steps
    seconds = suite.measurement.least_seconds
    set_its_own = (run.steps or 0) > past.max_steps
    if past.max_steps == max_steps and set_its_own == (seconds is not None):
        return 0.0
    if run.steps is None or run.mean_step_seconds is None:
        return 0.0 if past.max_steps == max_steps else None
    if seconds is not None:
        max_steps = max(max_steps, steps_that_last(seconds, [run.mean_step_seconds]))
    ended_by_itself = run.steps < past.max_steps
    steps = min(run.steps, max_steps) if ended_by_itself else max_steps
    return (steps - run.steps) * run.mean_step_seconds
