"""What a job has once, however many runs it carries, and what a job of one run alone is billed."""

from dataclasses import dataclass

from traindyno.core.costs.projection import measured_attempt, read_job_time
from traindyno.core.measurement.run_phases import script_phases
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Purchase


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
