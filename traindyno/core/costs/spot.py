"""Spot instances: their discount and interruptions, observed or assumed, and what jobs cost on them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import read_job_time
from traindyno.core.costs.quantity_text import share_text, usd_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import CHECKPOINT
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.pricing import SpotTerms
from traindyno.core.suite.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotAssumption:
    """``discount``: share of the on-demand price that is saved. ``interruptions_per_hour`` of one job."""

    discount: float
    interruptions_per_hour: float

    def usd(self, on_demand_usd: Decimal, at_risk_seconds: Decimal) -> Decimal:
        """An interruption repeats half of the time at risk on average (see ``at_risk_seconds``)."""
        repeated = Decimal(str(self.interruptions_per_hour)) * at_risk_seconds / SECONDS_PER_HOUR / 2
        return on_demand_usd * (1 - Decimal(str(self.discount))) * (1 + repeated)

    def text(self) -> str:
        rate = f"{self.interruptions_per_hour:g} interruptions per hour of a job"
        return f"assumed: a discount of {share_text(self.discount, digits=0)} and {rate}"


def at_risk_seconds(suite: Suite) -> Decimal:
    """The work of a job at its time limit that an interruption can lose: the time between two checkpoints, or all of
    it.

    The checkpoint that a job writes on SIGTERM does not count: it may not be complete within 120 s.
    """
    job_seconds, measurement = Decimal(suite.limits.max_job_seconds), suite.measurement
    if measurement.checkpoint_every_steps is None:
        return job_seconds
    return job_seconds * min(Decimal(1), Decimal(measurement.checkpoint_every_steps) / measurement.max_steps)


def spot_cost_text(on_demand_usd: Decimal | None, at_risk_seconds: Decimal, assumed: SpotAssumption) -> str:
    spot_usd = None if on_demand_usd is None else assumed.usd(on_demand_usd, at_risk_seconds)
    return f"{usd_text(spot_usd)} on spot instead of {usd_text(on_demand_usd)} on demand; {assumed.text()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotExpectation:
    """``training_hours`` are those of the spot jobs that showed the terms; None where the suite gave them."""

    terms: SpotTerms
    training_hours: float | None


def expect_spot(results: Iterable[RunResult], given: Mapping[str, SpotTerms]) -> dict[str, SpotExpectation]:
    """Instance type → what its spot jobs showed.

    The discount is 1 - billable ÷ training of all spot jobs, as SageMaker states it. The time between checkpoints is
    not a property of the capacity: see ``with_checkpoints_of``.
    """
    observed = _observe(results)
    expected = {name: SpotExpectation(terms=terms, training_hours=None) for name, terms in given.items()}
    for name, seen in observed.items():
        if seen.training <= 0:
            continue
        hours = seen.training / SECONDS_PER_HOUR
        terms = SpotTerms(
            discount=max(0.0, 1 - seen.billable / seen.training),
            interruptions_per_hour=seen.interruptions / hours,
            checkpoint_hours=given[name].checkpoint_hours if name in given else None,
        )
        expected[name] = SpotExpectation(terms=terms, training_hours=hours)
    return expected


def with_checkpoints_of(result: RunResult, every_steps: int | None, terms: SpotTerms) -> SpotTerms:
    """The terms with the time between two checkpoints of this run, at its measured rate, where it writes any.

    Checkpoints in its log take precedence over ``every_steps``, the suite's setting: a script decides itself when it
    writes them. A checkpoint that is only written on SIGTERM does not count: it may not be complete within 120 s.
    """
    throughput = result.measured.throughput if result.measured else None
    if result.measured is None or throughput is None:
        return terms
    logged = next((event.steps_between for event in result.measured.recurring if event.name == CHECKPOINT), None)
    steps_between = every_steps if logged is None else logged
    if steps_between is None:
        return terms
    return replace(terms, checkpoint_hours=steps_between / throughput.steps_per_second / SECONDS_PER_HOUR)


@dataclass(slots=True, kw_only=True)
class _Seen:
    training: float = 0.0
    billable: float = 0.0
    interruptions: int = 0


def _observe(results: Iterable[RunResult]) -> dict[str, _Seen]:
    seen: dict[str, _Seen] = {}
    for result in results:
        if result.price.purchase != Purchase.SPOT:
            continue
        of_type = seen.setdefault(result.run.cell.settings.instance, _Seen())
        of_type.interruptions += (result.measured.interruptions or 0) if result.measured else 0
        for attempt in result.attempts:
            time = read_job_time(attempt)
            if time is not None and time.billable is not None:
                of_type.training += time.training
                of_type.billable += time.billable
    return seen
