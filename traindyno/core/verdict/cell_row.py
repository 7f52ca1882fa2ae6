"""One row of the answer per cell: what its trials measured, with intervals, and how they ended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean

from traindyno.core.costs.prediction import Prediction, predict_run
from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.statistics import Estimate, PooledSpread, estimate, pool_spread
from traindyno.core.suite.suite import Cell

MEASURED_OUTCOMES = (Outcome.COMPLETED, Outcome.COST_STOPPED)

Quantity = Callable[[RunResult], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """``seconds``, ``usd`` and ``instance_hours`` are of the suite's whole workload, projected from each trial.

    ``seconds`` is wall clock: ``before_training_seconds`` of it pass until training starts (waiting for capacity,
    starting, downloading), and all that is paid once are ``overhead_seconds``, of which ``training_overhead_seconds``
    are training time. ``billable_share`` is what SageMaker bills of the training time. ``recurring_share`` is the part
    of the step time that checkpoints, evaluation and stalls take. ``prediction`` is of one future run.
    ``waiting_seconds`` is the mean wait for capacity: a cheap chip that can't be had is not cheap.
    ``unsteady_trials`` counted, but their step times had not settled. ``warm_share`` is of the trials that count: how
    many started on instances that an earlier job had left; None where nothing is kept warm.
    """

    cell_id: str
    label: str
    instance: str
    instance_count: int
    outcomes: Mapping[str, int]
    trials: int
    unsteady_trials: int
    samples_per_second: Estimate | None
    tokens_per_second: Estimate | None
    seconds: Estimate | None
    usd: Estimate | None
    instance_hours: Estimate | None
    overhead_seconds: float | None
    model_flops_utilization: float | None
    data_wait_share: float | None
    peak_memory_bytes: int | None
    waiting_seconds: float | None
    usd_per_instance_hour: Decimal | None
    spent_usd: Decimal | None
    message: str | None
    is_simulated: bool
    warm_share: float | None = None
    before_training_seconds: float | None = None
    training_overhead_seconds: float | None = None
    billable_share: float | None = None
    recurring_share: float | None = None
    unsteady_reasons: tuple[str, ...] = ()
    prediction: Prediction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTrials:
    """A cell with the results that count as measured, and those that don't."""

    cell: Cell
    measured: tuple[RunResult, ...]
    others: tuple[RunResult, ...]

    def values(self, quantity: Quantity) -> list[float]:
        """Of the measured trials that know it: one with an unknown bill is left out, and not its cell."""
        found = [quantity(result) for result in self.measured]
        return [value for value in found if value is not None and value > 0]

    @property
    def versions(self) -> Mapping[str, str]:
        """What the first measured trial's packages said of themselves; empty if its log doesn't tell."""
        environment = self.measured[0].environment if self.measured else None
        found = environment.facts.get("versions") if environment else None
        return {name: str(version) for name, version in found.items()} if isinstance(found, Mapping) else {}


def group_trials(cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[CellTrials, ...]:
    by_cell: dict[str, list[RunResult]] = {}
    for result in sorted(results, key=lambda each: each.run.trial):
        by_cell.setdefault(result.run.cell.cell_id, []).append(result)
    return tuple(
        CellTrials(
            cell=cell,
            measured=tuple(result for result in by_cell.get(cell.cell_id, ()) if is_measured(result)),
            others=tuple(result for result in by_cell.get(cell.cell_id, ()) if not is_measured(result)),
        )
        for cell in cells
    )


def is_measured(result: RunResult) -> bool:
    return result.outcome in MEASURED_OUTCOMES and result.samples_per_second is not None


def samples_per_second(result: RunResult) -> float | None:
    return result.samples_per_second


def tokens_per_second(result: RunResult) -> float | None:
    return result.measured.throughput.tokens_per_second if result.measured and result.measured.throughput else None


def projected_seconds(result: RunResult) -> float | None:
    projection = project_run(result)
    return projection.seconds if projection else None


def projected_usd(result: RunResult) -> float | None:
    projection = project_run(result)
    return float(projection.usd) if projection and projection.usd is not None else None


def projected_instance_hours(result: RunResult) -> float | None:
    projection = project_run(result)
    return projection.instance_hours if projection else None


QUANTITIES: tuple[Quantity, ...] = (
    samples_per_second,
    tokens_per_second,
    projected_seconds,
    projected_usd,
    projected_instance_hours,
)


def pool_over(trials: Sequence[CellTrials], quantity: Quantity) -> PooledSpread | None:
    return pool_spread([each.values(quantity) for each in trials])


def build_rows(trials: Sequence[CellTrials]) -> tuple[CellRow, ...]:
    pooled = {quantity: pool_over(trials, quantity) for quantity in QUANTITIES}
    return tuple(_row(each, pooled) for each in trials)


def _row(trials: CellTrials, pooled: Mapping[Quantity, PooledSpread | None]) -> CellRow:
    def estimated(quantity: Quantity) -> Estimate | None:
        values = trials.values(quantity)
        return estimate(values, pooled=pooled[quantity]) if values and min(values) > 0 else None

    everything = (*trials.measured, *trials.others)
    projections = [each for each in map(project_run, trials.measured) if each]
    throughputs = [each.measured.throughput for each in trials.measured if each.measured and each.measured.throughput]
    return CellRow(
        cell_id=trials.cell.cell_id,
        label=trials.cell.label,
        instance=trials.cell.settings.instance,
        instance_count=trials.cell.settings.instance_count,
        outcomes=_count_outcomes(everything),
        trials=len(trials.measured),
        unsteady_trials=sum(
            not each.measured.steady_state.is_reached for each in trials.measured if each.measured is not None
        ),
        samples_per_second=estimated(samples_per_second),
        tokens_per_second=estimated(tokens_per_second),
        seconds=estimated(projected_seconds),
        usd=estimated(projected_usd),
        instance_hours=estimated(projected_instance_hours),
        overhead_seconds=_mean([each.overhead_seconds for each in projections]),
        before_training_seconds=_mean([each.before_training_seconds for each in projections]),
        training_overhead_seconds=_mean([each.training_overhead_seconds for each in projections]),
        billable_share=_mean([each.billable_share for each in projections]),
        model_flops_utilization=_mean([each.model_flops_utilization for each in throughputs]),
        data_wait_share=_mean([each.data_wait_share for each in throughputs]),
        recurring_share=_mean([each.recurring_share for each in throughputs]),
        unsteady_reasons=_unsteady_reasons(trials.measured),
        prediction=predict_run(trials.measured),
        peak_memory_bytes=max((each.measured.peak_memory_bytes or 0 for each in everything if each.measured), default=0)
        or None,
        waiting_seconds=_mean([each.phases_seconds.get("waiting") for each in everything]),
        usd_per_instance_hour=next((each.price.usd_per_instance_hour for each in everything), None),
        spent_usd=_spent(everything),
        message=next((each.message for each in trials.others if each.message), None),
        is_simulated=any(each.is_simulated for each in everything),
        warm_share=_mean([each.started_warm for each in trials.measured]),
    )


def _unsteady_reasons(results: Sequence[RunResult]) -> tuple[str, ...]:
    states = [each.measured.steady_state for each in results if each.measured is not None]
    return tuple(dict.fromkeys(state.reason for state in states if state.reason is not None))


def _count_outcomes(results: Sequence[RunResult]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for result in results:
        counts[result.outcome.value] = counts.get(result.outcome.value, 0) + 1
    return counts


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _spent(results: Sequence[RunResult]) -> Decimal | None:
    """None as soon as one run's cost is unknown."""
    costs = [paid_usd(result) for result in results]
    return None if not costs or None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))
