"""One row of the answer per cell: what its trials measured, with intervals, and their outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from traindyno.core.costs.hazard import Hazard, UnevenFaults
from traindyno.core.costs.prediction import Prediction
from traindyno.core.documents.stored import AnyPart, Part, StoredPart, find_part
from traindyno.core.jobs.outcome import OWN_FAILURES, Outcome
from traindyno.figures.estimates import Estimate
from traindyno.figures.hosts import STATED_PRIOR, HostSpread
from traindyno.figures.table import TO_TARGET, FigureColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class CellQuality(StoredPart):
    """The quality that a cell's trials reached.

    ``accuracy``, ``loss`` and ``perplexity`` are of the last evaluation of each measured trial. The
    rest is about the goal's target, None where it has none: ``reached`` of the measured trials
    reached it, ``best`` is the best value of any evaluation, ``seconds`` and ``usd`` are the time
    and the cost until it was reached. Estimates have no interval if the trials are not draws of the
    seed.
    """

    kind: ClassVar[str] = "quality"
    #: Several trials are one draw of what depends on the seed.
    repeats_a_seed: bool = False
    accuracy: Estimate | None = None
    loss: Estimate | None = None
    perplexity: Estimate | None = None
    reached: int | None = None
    best: float | None = None
    seconds: Estimate | None = None
    usd: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTime:
    """Means of what the whole workload takes beside its steps, and of what its steps wait for."""

    #: Part of the time that is paid once.
    overhead_seconds: float | None = None
    #: Part of ``overhead_seconds`` that is training time.
    training_overhead_seconds: float | None = None
    #: Part of the time before training starts: waiting for capacity, starting, downloading.
    before_training_seconds: float | None = None
    waiting_seconds: float | None = None
    #: Share of the training time that is billed.
    billable_share: float | None = None
    #: Share of the step time that waits for data.
    data_wait_share: float | None = None
    #: Share of the step time that checkpoints, evaluation and stalls take.
    recurring_share: float | None = None
    #: Share of the devices' peak FLOPS.
    model_flops_utilization: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """How far the measured trials show the rate of the whole workload."""

    #: Mean time of the steps that a trial's rate is from.
    measured_seconds: float | None = None
    #: Mean time of a long run's steps, if it was measured; its figures replace the trials'.
    long_run_seconds: float | None = None
    #: How its long run ended, if it was not measured; and by which factor it took longer than the
    #: trials, if it was, but its rival's was lost.
    lost_long_run: str | None = None
    unpaired_ratio: float | None = None
    #: Trials without a steady state; not those that ended at their target.
    unsteady_trials: int = 0
    unsteady_reasons: tuple[str, ...] = ()
    #: What the trials can't decide about the cell, however many there are.
    undecided_reasons: tuple[str, ...] = ()
    #: No trial shows what a checkpoint or an evaluation of the full run costs.
    misses_event: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellHosts:
    """The hosts of the measured trials, and how often such hosts fail."""

    #: The spread between hosts that is assumed for the cell.
    spread: HostSpread = STATED_PRIOR
    #: Number of different sets of hosts; None if some are unknown.
    draws: int | None = None
    #: The largest share of a busy host's CPU time that other work took; None if no measured trial
    #: had such a host.
    others_cpu_share: float | None = None
    #: How often the capacity fails, as the row's time and cost include it.
    hazard: Hazard | None = None
    #: Width of what is unknown of the hazard's factor of the time, a logarithm.
    hazard_width: float = 0.0
    #: Faults of the service that may be the cell's own; None where they are as on the other cells
    #: of its type.
    uneven_faults: UnevenFaults | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """One row of the answer. Means are over the measured trials; None is unknown.

    ``seconds``, ``usd`` and ``instance_hours`` are of the suite's whole workload, projected from
    each trial, with the cell's own failures and with interruptions at the rate of its capacity.
    """

    cell_id: str
    #: The settings in which the cell differs from others.
    label: str
    instance: str
    instance_count: int
    #: Outcome → number of trials.
    outcomes: Mapping[str, int]
    #: Number of measured trials.
    trials: int
    samples_per_second: Estimate | None
    tokens_per_second: Estimate | None
    steps_per_second: Estimate | None
    #: Wall clock of the whole workload, with waiting and starting.
    seconds: Estimate | None
    #: Cost of the whole workload.
    usd: Estimate | None
    #: Instance hours of the whole workload.
    instance_hours: Estimate | None
    #: Seconds that SageMaker bills of each instance.
    billable_seconds: Estimate | None
    #: Interval for one future run.
    prediction: Prediction | None
    #: Price of one instance hour.
    usd_per_instance_hour: Decimal | None
    #: Cost of all trials; None if that of any is unknown.
    spent_usd: Decimal | None
    #: First message of a trial, of those that were not measured before the others.
    message: str | None
    #: By which share its outpaced trials were slower at least, the largest one.
    least_behind: float | None
    time: CellTime = field(default_factory=CellTime)
    steadiness: Steadiness = field(default_factory=Steadiness)
    hosts: CellHosts = field(default_factory=CellHosts)
    parts: tuple[AnyPart, ...] = ()

    def part(self, kind: type[Part]) -> Part:
        return find_part(self.parts, kind) or kind()

    def estimate(self, column: FigureColumn) -> Estimate | None:
        """A figure that a goal may minimise."""
        if column in TO_TARGET:
            quality = self.part(CellQuality)
            return quality.usd if column.is_money else quality.seconds
        estimate: Estimate | None = getattr(self, column)
        return estimate

    @property
    def failed(self) -> int:
        """Trials that failed because of the cell, those that diverged included."""
        failures = sum(count for outcome, count in self.outcomes.items() if outcome in OWN_FAILURES)
        return failures - (self.steadiness.lost_long_run == Outcome.TIMED_OUT)  # its limit's

    @property
    def diverged(self) -> int:
        return self.outcomes.get(Outcome.LOSS_DIVERGED, 0)

    @property
    def outpaced(self) -> int:
        """Trials that ended early because the cell can't win."""
        return self.outcomes.get(Outcome.OUTPACED, 0)

    @property
    def attempted(self) -> int:
        """Trials whose outcome the cell itself caused, success or failure."""
        return self.trials + self.failed

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The price of all instances together; None if it is unknown."""
        return (
            None
            if self.usd_per_instance_hour is None
            else self.usd_per_instance_hour * self.instance_count
        )
