"""How often capacity fails and attempts of a cell succeed.

Capacity fails by interruptions and faults of the service, counted per hour of an instance. Such a
fault belongs to no single cell: all cells on one instance type and purchase option share the rate.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import INTERRUPTED, measured_attempt, unbilled_seconds
from traindyno.core.jobs.attempt import FAULT_ERRORS, Attempt, trained_seconds
from traindyno.core.jobs.outcome import FAULTS, OWN_FAILURES, SUCCESSES
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.goal import SpotTerms
from traindyno.figures.distributions import SIGNIFICANCE, gamma_quantile, incomplete_beta

# Instance type, purchase option.
HazardKey = tuple[str, str]
# The prior counts as much as one hour of an instance.
PRIOR_HOURS = 1.0
_TAIL = 0.025
# A rate of which 95 % of the posterior span more than an order of magnitude is no figure: about
# three events or fewer. On spot, where interruptions are expected, the first ones count.
MOST_SPAN = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessRate:
    """Share of a cell's training jobs that succeed.

    ``attempts`` counts the billed training jobs that succeeded or failed by the cell itself.
    """

    successes: int
    attempts: int


def measure_success(results: Sequence[RunResult]) -> SuccessRate:
    """The share of jobs that succeed.

    Faults of the service, missing capacity and jobs that a person stopped are not counted.
    """
    # the outcome of the run counts for its last attempt: a loss may be found to have diverged after
    # the job ended
    outcomes = [
        result.outcome if attempt is result.attempts[-1] else attempt.outcome
        for result in results
        for attempt in result.attempts
        if attempt.billable_seconds and attempt.error is None
    ]
    successes = sum(outcome in SUCCESSES for outcome in outcomes)
    return SuccessRate(
        successes=successes,
        attempts=successes + sum(outcome in OWN_FAILURES for outcome in outcomes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Rate that is assumed before jobs were observed.

    ``most`` is what a type's rate may be as long as its hours don't exclude it; if it is None, the
    spread of the source counts.
    """

    per_instance_hour: float
    source: str
    most: float | None = None


PRIORS: Mapping[str, Prior] = {
    Purchase.ON_DEMAND.value: Prior(
        per_instance_hour=1.6e-4,
        source="419 unexpected interruptions of 2,048 hosts in 54 days, Llama 3 (2024), table 5",
    ),
    # Some hours of trials show a rate above one per hour.
    Purchase.SPOT.value: Prior(
        per_instance_hour=0.05, source="an assumption: SageMaker publishes no rate", most=1.0
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Seconds from an interruption to the next step: ``waiting`` for capacity and starting are not
    billed.
    """

    waiting: float
    training: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """The posterior of a rate, a gamma distribution: ``count`` events in ``hours`` of an instance,
    and the prior.

    95 % of it are between ``low`` and ``high``.
    """

    key: HazardKey
    #: The mean; off spot at most the prior if ``low`` and ``high`` are more than ``MOST_SPAN``
    #: apart.
    per_instance_hour: float
    low: float
    high: float
    hours: float
    count: int
    source: str
    #: Shape of the gamma posterior, whose rate is the hours and the prior's.
    shape: float
    #: Mean seconds without instances, and starting again, of the interruptions that were seen; None
    #: without any.
    wait_seconds: float | None = None
    #: What an interruption cost in runs of the suite that resumed; None if none did. The same for
    #: all capacity.
    resumed: Restart | None = None

    @property
    def basis(self) -> str:
        """Where the rate comes from."""
        seen = (
            f"{self.count} in {self.hours:.1f} h of the runs" if self.hours else "no run shows it"
        )
        return f"{seen}; prior: {self.source}"


def observe_hazards(
    results: Iterable[RunResult], given: Mapping[str, SpotTerms] | None = None
) -> dict[HazardKey, Hazard]:
    """A rate for each instance type and purchase option of the results.

    ``given`` has the suite's expectations for spot by instance type, which replace the stated
    prior.
    """
    counts: dict[HazardKey, int] = {}
    hours: dict[HazardKey, float] = {}
    waits: dict[HazardKey, list[float]] = {}
    instances: dict[HazardKey, int] = {}
    seen = list(results)
    resumed = seen_resumption(seen)
    for result in seen:
        key = hazard_key(result)
        count = result.run.cell.settings.instance_count
        instances[key] = min(count, instances.get(key, count))
        restarts = _restarts(result)
        measured = measured_attempt(result)
        counts[key] = counts.get(key, 0) + restarts + _count_faults(result)
        hours[key] = hours.get(key, 0.0) + instance_hours(result)
        known = waits.setdefault(key, [])
        if restarts and measured is not None and measured.phase_seconds.get(INTERRUPTED):
            known += [unbilled_seconds(measured, restarts) / restarts] * restarts
    return {
        key: replace(
            posterior(
                key,
                count=counts[key],
                hours=hours[key],
                given=given or {},
                instances=instances[key],
            ),
            wait_seconds=fmean(waits[key]) if waits[key] else None,
            resumed=resumed,
        )
        for key in counts
    }


def hazard_key(result: RunResult) -> HazardKey:
    return result.run.cell.settings.instance, result.price.purchase or Purchase.ON_DEMAND.value


def seen_resumption(results: Sequence[RunResult]) -> Restart | None:
    """What an interruption cost on average in these runs, with the work that was done again.

    None if no run shows that it went on with earlier work: a few minutes of work that began again
    say nothing about hours of it.
    """
    lost = waiting = 0.0
    count = 0
    is_resumed = False
    for result in results:
        measured = result.measured
        attempt = measured_attempt(result)
        restarts = _restarts(result)
        if measured is None or attempt is None or not restarts:
            continue
        count += restarts
        lost += measured.job.lost_seconds
        waiting += min(measured.job.lost_seconds, unbilled_seconds(attempt, restarts))
        is_resumed = is_resumed or bool(measured.job.kept_seconds)
    return (
        Restart(waiting=waiting / count, training=(lost - waiting) / count) if is_resumed else None
    )


def posterior(
    key: HazardKey, *, count: int, hours: float, given: Mapping[str, SpotTerms], instances: int = 1
) -> Hazard:
    """Hazard after the observed hours.

    Args:
        count: Incidents in ``hours``.
        hours: Observed hours of an instance.
        given: Terms that the suite gives, by instance type.
        instances: Instances of the smallest job. The suite gives a rate of a job, and a prior has
            one of an instance.
    """
    instance, purchase = key
    terms = given.get(instance) if purchase == Purchase.SPOT else None
    prior = PRIORS.get(purchase, PRIORS[Purchase.ON_DEMAND])
    if terms is not None and terms.interruptions_per_hour is not None:
        prior = Prior(
            per_instance_hour=terms.interruptions_per_hour / instances, source="given in the suite"
        )
    shape = count + prior.per_instance_hour * PRIOR_HOURS
    figure = shape / (hours + PRIOR_HOURS)
    low, high = (gamma_quantile(tail, shape) / (hours + PRIOR_HOURS) for tail in (_TAIL, 1 - _TAIL))
    if purchase != Purchase.SPOT and high > MOST_SPAN * low:
        figure = min(figure, prior.per_instance_hour)
    if not count:  # types differ, whatever one source counted
        of_exponential = gamma_quantile(1 - _TAIL, 1.0)
        unseen = of_exponential / (hours + PRIOR_HOURS)
        high = max(high, figure * of_exponential if prior.most is None else min(prior.most, unseen))
    return Hazard(
        key=key,
        per_instance_hour=figure,
        low=min(low, figure),
        high=high,
        shape=shape,
        hours=hours,
        count=count,
        source=prior.source,
    )


def _restarts(result: RunResult) -> int:
    """Number of restarts after interruptions.

    On demand, a launcher may also start again after an error of the script, so the service has to
    report an interruption.
    """
    attempt = measured_attempt(result)
    if result.measured is None or attempt is None:
        return 0
    is_reported = result.price.purchase == Purchase.SPOT or attempt.phase_seconds.get(INTERRUPTED)
    return result.measured.job.interruptions if is_reported else 0


def ended_by_fault(result: RunResult, attempt: Attempt) -> bool:
    if not attempt.billable_seconds or not attempt.is_charged_for_faults:
        return False
    if attempt.error is not None:
        return attempt.error in FAULT_ERRORS
    outcome = result.outcome if attempt is result.attempts[-1] else attempt.outcome
    return outcome in FAULTS


def instance_hours(result: RunResult) -> float:
    seconds = sum(trained_seconds(attempt) or 0.0 for attempt in result.attempts)
    return seconds * result.run.cell.settings.instance_count / SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class UnevenFaults:
    """Faults that hit one cell more often than others of its instance type.

    ``count`` of the ``all_count`` faults of a type hit this cell, which has this share of the hours
    of the type. ``p`` is the probability of so many or more, if faults are alike on all cells of
    the type.
    """

    count: int
    all_count: int
    hours_share: float
    p: float


def find_uneven_faults(cells: Mapping[str, Sequence[RunResult]]) -> dict[str, UnevenFaults]:
    """Uneven faults by cell id, for the ``cells`` whose faults may be their own.

    The faults of a type fall on its cells by their instance-hours: the number of one cell is
    binomial (Przyborowski and Wilenski 1940). A single fault hits some cell in any case.
    Nevertheless, if a cell alone has faults and one of them left no measurement of its trial, what
    this trial would have shown is unknown.
    """
    by_type: dict[HazardKey, dict[str, list[RunResult]]] = {}
    for cell_id, results in cells.items():
        for result in results:
            by_type.setdefault(hazard_key(result), {}).setdefault(cell_id, []).append(result)
    return {
        cell_id: faults for alike in by_type.values() for cell_id, faults in _of_one_type(alike)
    }


def _of_one_type(cells: Mapping[str, Sequence[RunResult]]) -> Iterator[tuple[str, UnevenFaults]]:
    counts = {cell_id: sum(map(_count_faults, results)) for cell_id, results in cells.items()}
    hours = {cell_id: sum(map(instance_hours, results)) for cell_id, results in cells.items()}
    all_count = sum(counts.values())
    all_hours = sum(hours.values())
    for cell_id, count in counts.items():
        if not count or hours[cell_id] >= all_hours:
            continue
        share = hours[cell_id] / all_hours
        p = incomplete_beta(count, all_count - count + 1, share)
        is_uneven = count > 1 and p < SIGNIFICANCE
        loses = any(_count_faults(result) and result.measured is None for result in cells[cell_id])
        if is_uneven or (count == all_count and loses):
            yield cell_id, UnevenFaults(count=count, all_count=all_count, hours_share=share, p=p)


def _count_faults(result: RunResult) -> int:
    return sum(ended_by_fault(result, attempt) for attempt in result.attempts)
