"""What a suite that is played on a response surface ends with, and a run's result at a given
rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from tests.simulations.response_surface import EXAMPLES
from tests.unit.run_samples import known, make_attempt, make_suite, result_from, step_log_of
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.verdict.verdict import Verdict

STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A race on a surface: the share of the grid's billable seconds that was spent, the bill behind
    it, and the regret of the recommended cell, as a share.
    """

    surface: str
    share: float
    regret: float
    rounds: int
    runs: int
    verdict: Verdict
    bill: Mapping[str, float] = field(default_factory=dict)


def at_rate(template: RunResult, samples_per_second: float, steady_seconds: float) -> MeasuredRun:
    """Steady for the whole trial, so that the projection is the work at this rate."""
    measured = known(template.measured)
    return replace(
        measured,
        throughput=replace(known(measured.throughput), samples_per_second=samples_per_second),
        samples_before_steady=0,
        steady_seconds=steady_seconds,
    )


@cache
def result_template() -> RunResult:
    """A run that completed in even steps, through the lab's own functions."""
    attempt = make_attempt(billable_seconds=float(STEPS), phase_seconds={"training": float(STEPS)})
    return result_from(
        step_log_of([1.0] * STEPS, samples=1),
        suite=make_suite(examples=EXAMPLES),
        attempts=[attempt],
        price=PaidPrice(usd_per_instance_hour=None),
    )
