"""The summary of a finished run, from its result."""

from dataclasses import dataclass

from traindyno.core.costs.projection import measured_attempt, paid_usd, project_run, read_job_time
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.measurement.loss_parity import late_loss
from traindyno.core.measurement.run_phases import script_phases
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import PROBE
from traindyno.core.suite.choices import Purchase, Quality
from traindyno.core.verdict.cell_quality import last_values


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOverhead:
    """Waiting, starting, data, image and upload. ``billable_seconds`` of None: the billed share is unknown."""

    seconds: float
    billable_seconds: float | None


def job_overhead(result: RunResult) -> JobOverhead | None:
    """Time of the measured job beside the run itself, by its share or its step log; None if unknown."""
    attempt = measured_attempt(result)
    time = read_job_time(attempt, is_spot=result.price.purchase == Purchase.SPOT) if attempt else None
    if attempt is None or time is None:
        return None
    own = attempt.share.own_seconds if attempt.share else sum(script_phases(result.phases_seconds).values())
    if not own:
        return None
    share = time.billable_share
    return JobOverhead(
        seconds=max(0.0, time.wall - own),
        billable_seconds=None if share is None else max(0.0, time.training - own) * share,
    )


def alone_billable_seconds(result: RunResult) -> float | None:
    """Billable time of all attempts as if their jobs had this run only; None if any is unknown."""
    times = [read_job_time(attempt) for attempt in result.attempts]
    billed = [None if time is None else time.billable for time in times]
    return None if not billed or None in billed else sum(seconds for seconds in billed if seconds is not None)


def summarise(result: RunResult) -> RunSummary:
    run, projection = result.run, project_run(result)
    measured, overhead = result.measured, job_overhead(result)
    throughput = measured.throughput if measured else None
    return RunSummary(
        run_id=run.run_id,
        execution_id=run.execution_id,
        cell_id=run.cell.cell_id,
        cell_label=run.cell.label,
        trial=run.trial,
        outcome=result.outcome,
        message=result.message,
        attempts=len(result.attempts),
        job_name=result.attempts[-1].job_name if result.attempts else None,
        instance=run.cell.settings.instance,
        instance_count=run.cell.settings.instance_count,
        samples_per_second=throughput.samples_per_second if throughput else None,
        tokens_per_second=throughput.tokens_per_second if throughput else None,
        mean_step_seconds=throughput.step_times.mean_seconds if throughput else None,
        steady_steps=throughput.steps if throughput else None,
        warmup_steps=measured.steady_state.warmup_steps if measured else None,
        is_steady=measured.steady_state.is_reached if measured else None,
        billable_seconds=result.billable_seconds,
        alone_billable_seconds=alone_billable_seconds(result),
        job_seconds=sum(result.phases_seconds.values()),
        overhead_seconds=overhead.seconds if overhead else None,
        overhead_billable_seconds=overhead.billable_seconds if overhead else None,
        cost_usd=paid_usd(result),
        accuracy=next(iter(last_values([result], Quality.ACCURACY)), None),
        evaluation_loss=next(iter(last_values([result], Quality.LOSS)), None),
        late_loss=late_loss(result),
        projected_seconds=projection.seconds if projection else None,
        projected_usd=projection.usd if projection else None,
        is_simulated=result.is_simulated,
        is_contended=measured is not None and measured.is_contended,
        data_wait_share=throughput.data_wait_share if throughput else None,
        hosts=" ".join(result.environment.host_ids) or None if result.environment else None,
        seed=result.seed,
        outpaced_by=result.bound.by if result.bound else None,
        least_ratio=result.bound.least_ratio if result.bound else None,
        probe_seconds=result.phases_seconds.get(PROBE),
    )
