"""The table of figures of run results, built once: a row for each trial, by which cells are
compared.
"""

from collections.abc import Mapping, Sequence

from traindyno.core.costs.extra_time import extra_times
from traindyno.core.costs.full_run import scheduled_phases
from traindyno.core.costs.projection import project_run
from traindyno.core.costs.to_target import reach_target
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.measurement.loss_parity import are_draws_of_seeds
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.core.step_log.line import SCATTER
from traindyno.core.suite.runs import block_of
from traindyno.core.verdict.cell_runs import CellRuns, hosts_of
from traindyno.core.verdict.undecided import find_undecided
from traindyno.figures.beyond import Undecided
from traindyno.figures.hosts import ONE_MACHINE, STATED_PRIORS, HostPriors
from traindyno.figures.in_job.run_scatter import measured_scatter, run_scatter
from traindyno.figures.table import (
    TO_TARGET,
    CellFacts,
    FigureColumn,
    Figures,
    LongRun,
    TrialRow,
    tabulate,
)


def build_figures(
    cells: Sequence[CellRuns],
    target: QualityTarget | None = None,
    priors: HostPriors = STATED_PRIORS,
) -> Figures:
    """The table of all measured trials; ``target``: the goal's, if it names a quality."""
    rows = (_row(runs.key, result, target) for runs in cells for result in runs.measured)
    return tabulate(rows, {runs.key: _facts(runs, target, priors) for runs in cells})


def values_of(result: RunResult, target: QualityTarget | None = None) -> dict[FigureColumn, float]:
    """The values of a run that are known and above 0."""
    rate = result.throughput
    projection = project_run(result)
    values = {
        FigureColumn.SAMPLES_PER_SECOND: result.samples_per_second,
        FigureColumn.TOKENS_PER_SECOND: rate.tokens_per_second if rate else None,
        FigureColumn.STEPS_PER_SECOND: rate.steps_per_second if rate else None,
    }
    if projection is not None:
        values |= {
            FigureColumn.SECONDS: projection.seconds,
            FigureColumn.BILLABLE_SECONDS: projection.billable_seconds,
            FigureColumn.USD: None if projection.usd is None else float(projection.usd),
            FigureColumn.INSTANCE_HOURS: projection.instance_hours,
        }
    reached = reach_target(result, target) if target else None
    if reached is not None:
        values |= {
            FigureColumn.SECONDS_TO_TARGET: reached.seconds,
            FigureColumn.USD_TO_TARGET: None if reached.usd is None else float(reached.usd),
        }
    return {column: value for column, value in values.items() if value is not None and value > 0}


def _row(key: str, result: RunResult, target: QualityTarget | None) -> TrialRow:
    """The row of a trial. Its job is the attempt that measured it: the next one of a job that died
    is on other hosts.
    """
    last = result.attempts[-1] if result.attempts else None
    share = last.share if last else None
    return TrialRow(
        cell=key,
        values=values_of(result, target),
        hosts=hosts_of(result),
        block=block_of(result.run),
        job=f"{result.run.execution_id} {last.job_name}" if last and share else None,
        place=share.place or None if share else None,
    )


def _facts(runs: CellRuns, target: QualityTarget | None, priors: HostPriors) -> CellFacts:
    instance = runs.cell.settings.instance
    scatter = measured_scatter(runs.facts.get(SCATTER))
    long_run = None
    if runs.confirmed is not None:
        long_run = LongRun(
            values=values_of(runs.confirmed),
            undecided=_undecided([runs.confirmed]),
        )
    return CellFacts(
        hosts=ONE_MACHINE if instance.startswith(LOCAL_PREFIX) else priors[runs.host_class],
        scatter=run_scatter(instance, scatter),
        scatter_to_target=run_scatter(instance, scatter, has_target=True),
        undecided=_undecided(runs.measured),
        long_run=long_run,
        extra=extra_times(
            runs.measured,
            runs.others,
            hazard=runs.hazard,
            uneven_faults=runs.uneven_faults,
            target=target,
        ),
        least_variances=_least_variances(runs, target) if target else {},
        are_draws_of_seeds=are_draws_of_seeds(runs.measured),
    )


def _undecided(results: Sequence[RunResult]) -> Undecided:
    """What runs of one suite leave open."""
    scheduled = scheduled_phases(results[0].full_run) if results else ()
    return find_undecided([result.measured for result in results if result.measured], scheduled)


def _least_variances(runs: CellRuns, target: QualityTarget) -> Mapping[FigureColumn, float]:
    """The least variances of the mean of trials: evaluations q apart can hide a spread of q / 2."""
    reached = [reach_target(result, target) for result in runs.measured]
    steps = [
        reach.since_seconds / reach.seconds for reach in reached if reach and reach.seconds > 0
    ]
    counts = {
        FigureColumn.SECONDS_TO_TARGET: len(steps),
        FigureColumn.USD_TO_TARGET: sum(bool(reach and reach.usd) for reach in reached),
    }
    return {
        column: max(steps, default=0.0) ** 2 / 4 / counts[column]
        for column in TO_TARGET
        if counts[column]
    }
