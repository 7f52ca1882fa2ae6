"""Suites with a limit: the cheapest cell within so many hours is next to the limit, and a later run
may break it.
"""

import random
from decimal import Decimal
from math import exp, log

from tests.simulations.suites.levels import hosts
from tests.simulations.suites.logs import FIXED_SECONDS, pooled_result
from tests.simulations.suites.play import Played, play_suite
from tests.simulations.suites.simulated_suite import FULL_STEPS, make_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Run

COUNTS = (1, 2, 3, 4)
EFFICIENCY = 0.8  # the exponent by which more instances are faster


def play_limit(deviation: float, name: str, number: int) -> Played:
    """The limit lies anywhere between the slowest cell's time and the fastest's."""
    source = random.Random(f"limit {name} {number}")
    levels = [-EFFICIENCY * log(count) for count in COUNTS]
    seconds = FIXED_SECONDS + FULL_STEPS * exp(source.uniform(levels[-1] + 0.1, levels[0] + 0.1))
    hours = Decimal(str(round(seconds / 3600, 4)))
    suite = make_suite(
        trials=5,
        matrix={"instance_count": COUNTS},
        training={},
        goal=Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=hours),
    )
    of_run = hosts(deviation).begin(source, len(COUNTS)).draw

    def draw(run: Run, cell: int) -> tuple[RunResult, float | None]:
        drawn = of_run(cell, run)
        return pooled_result(
            source, run, suite, exp(levels[cell] + drawn.log_factor), drawn.host_ids
        ), None

    verdict, best, _ = play_suite(suite, f"{name} {number}", draw)
    is_settled = best is not None and verdict.finding.is_settled
    later = (
        None
        if best is None
        else FIXED_SECONDS + FULL_STEPS * exp(levels[best] + source.gauss(0, deviation))
    )
    return Played(
        verdict=verdict,
        best=best,
        truth=tuple(_usd(count, level) for count, level in zip(COUNTS, levels, strict=True)),
        later=later,
        values=((),) * len(COUNTS),
        is_wrong=is_settled and later is not None and later > float(hours) * 3600,
    )


def _usd(count: int, level: float) -> float:
    """Before the limit; it is not judged."""
    return count * (FIXED_SECONDS + FULL_STEPS * exp(level))
