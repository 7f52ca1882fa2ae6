"""From a short run to the whole workload: its wall-clock time, its billable time and its cost, at
the measured rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from traindyno.core.costs import prices
from traindyno.core.costs.full_run import reschedule
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.jobs.attempt import UNBILLED_PHASES, Attempt, trained_seconds
from traindyno.core.measurement.run_phases import BEFORE_TRAINING
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import PROBE
from traindyno.core.suite.choices import Purchase

STARTING = "starting"
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """One uninterrupted run over the suite's examples; None where the run's own billing is
    unknown.
    """

    #: Waiting for capacity, starting, downloading.
    before_training_seconds: float
    #: All that is paid once, before and during training.
    overhead_seconds: float
    #: Part of ``overhead_seconds`` that is training time, which SageMaker bills.
    training_overhead_seconds: float
    #: Wall clock from the job's creation to its end.
    seconds: float
    #: Share of the training time that is billed: less than 1 with spot instances.
    billable_share: float | None
    #: Seconds that are billed of each instance.
    billable_seconds: float | None
    #: Hours of all instances, before the spot discount.
    instance_hours: float
    usd: Decimal | None

    @property
    def training_seconds(self) -> float:
        return self.seconds - self.overhead_seconds + self.training_overhead_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTime:
    """Seconds of one training job.

    ``training`` is SageMaker's training time, and ``billable`` the billed part of it.

    SageMaker bills whole seconds: a job of less than one second is billed 0 s, which says nothing
    about the share of a longer one. On demand that share is 1; on spot it stays unknown.
    """

    wall: float
    before_training: float
    training: float
    billable: float | None
    is_spot: bool = False

    @property
    def billable_share(self) -> float | None:
        if self.billable is None:
            return None
        if self.billable < 1:
            return None if self.is_spot else 1.0
        return self.billable / self.training if self.training > 0 else 1.0


def project_run(result: RunResult) -> Projection | None:
    """None where the run measured no rate, or where the time of its job or of an event of the full
    run is unknown.

    Only the attempt that was measured is projected. Other attempts and interrupted sessions are not
    overhead of a run: they occur at a rate (see success.py and hazard.py).
    """
    measured = result.measured
    scheduled = reschedule(result)
    attempt = measured_attempt(result)
    is_spot = result.price.purchase == Purchase.SPOT
    job_time = None if attempt is None else read_job_time(attempt, is_spot=is_spot)
    if (
        measured is None
        or measured.throughput is None
        or attempt is None
        or job_time is None
        or scheduled is None
    ):
        return None
    # A run of the whole work has no probes, as earlier code made them, and the measured session is
    # the only one of its job.
    lost = measured.job.lost_seconds + measured.job.kept_seconds
    if lost:
        billed = max(0.0, lost - unbilled_seconds(attempt, measured.job.interruptions))
        job_time = _without(job_time, wall=lost, training=billed)
    probed = result.phases_seconds.get(PROBE, 0.0)
    if probed:
        job_time = _without(job_time, wall=probed, training=probed)
    return project(
        examples=result.examples,
        samples_per_second=measured.throughput.samples_per_second / scheduled.slower,
        samples_before_steady=measured.samples_before_steady,
        steady_seconds=measured.steady_seconds + scheduled.once_seconds,
        job_time=job_time,
        instance_count=result.run.cell.settings.instance_count,
        usd_per_instance_hour=result.price.usd_per_instance_hour,
    )


def project(
    *,
    examples: int,
    samples_per_second: float,
    samples_before_steady: int,
    steady_seconds: float,
    job_time: JobTime,
    instance_count: int,
    usd_per_instance_hour: Decimal | None,
) -> Projection:
    """Project time and cost: overhead as measured, plus what is left of the work at the rate after
    the warm-up.

    A spot job is billed billable ÷ training of its time (SageMaker states the saving as 1 -
    billable ÷ training).
    """
    overhead = max(0.0, job_time.wall - steady_seconds)
    training_overhead = max(0.0, job_time.training - steady_seconds)
    remaining = max(0, examples - samples_before_steady) / samples_per_second
    training = training_overhead + remaining
    share = job_time.billable_share
    billable = None if share is None else training * share
    return Projection(
        before_training_seconds=job_time.before_training,
        overhead_seconds=overhead,
        training_overhead_seconds=training_overhead,
        seconds=overhead + remaining,
        billable_share=share,
        billable_seconds=billable,
        instance_hours=training * instance_count / SECONDS_PER_HOUR,
        usd=None
        if billable is None
        else known_cost_usd(billable, instance_count, usd_per_instance_hour),
    )


def measured_attempt(result: RunResult) -> Attempt | None:
    """The attempt whose step log was measured, or else the last one."""
    job_name = result.measured.job.name if result.measured else None
    named = (attempt for attempt in result.attempts if attempt.job_name == job_name)
    return next(named, result.attempts[-1] if result.attempts else None)


def read_job_time(attempt: Attempt, *, is_spot: bool = False) -> JobTime | None:
    """The time of a job of this run alone; None if neither SageMaker's own phases nor what was
    billed are known.
    """
    training = trained_seconds(attempt)
    if training is None:
        return None
    phases = attempt.phase_seconds
    billable = attempt.billable_seconds
    wall = sum(phases.values()) or training
    if attempt.share is not None:
        alone = attempt.share.alone_seconds
        wall = alone + sum(phases.get(name, 0.0) for name in UNBILLED_PHASES)
        billable = billable * alone / training if billable and training else billable
        training = alone
    return JobTime(
        wall=wall,
        before_training=before_training_seconds(phases),
        training=training,
        billable=billable,
        is_spot=is_spot,
    )


def before_training_seconds(phases: Mapping[str, float]) -> float:
    """Seconds of waiting for capacity, starting and downloading."""
    return sum(phases.get(name, 0.0) for name in BEFORE_TRAINING)


def paid_usd(result: RunResult) -> Decimal | None:
    """Cost of the run's attempts as billed; None if time or price is unknown."""
    if result.billable_seconds is None:
        return None
    count = result.run.cell.settings.instance_count
    price = result.price.usd_per_instance_hour
    return known_cost_usd(result.billable_seconds, count, price)


def known_cost_usd(
    seconds: float, instance_count: int, usd_per_instance_hour: Decimal | None
) -> Decimal | None:
    """The cost; None if the price is unknown.

    Seconds are converted through their shortest text, so that 0.1 is 0.1.
    """
    if usd_per_instance_hour is None:
        return None
    return prices.cost_usd(Decimal(str(seconds)), instance_count, usd_per_instance_hour)


def _without(job_time: JobTime, *, wall: float, training: float) -> JobTime:
    """The job's time without so many seconds, at the same billed share."""
    left = max(0.0, job_time.training - training)
    share = job_time.billable_share
    billable = None if share is None else left * share
    return replace(job_time, wall=max(0.0, job_time.wall - wall), training=left, billable=billable)


def unbilled_seconds(attempt: Attempt, interruptions: int) -> float:
    """Seconds between sessions that are not billed: without instances, and starting again.

    All starts count alike.
    """
    phases = attempt.phase_seconds
    if not phases.get(INTERRUPTED):
        return 0.0
    return phases[INTERRUPTED] + phases.get(STARTING, 0.0) * interruptions / (interruptions + 1)
