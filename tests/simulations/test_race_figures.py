"""What a race says around its answer: one run, the mean and the ratios, with how wide they are."""

from dataclasses import dataclass
from math import exp, log
from random import Random
from statistics import fmean

import pytest

from tests.simulations.decisions import Share, share_of
from tests.simulations.race_lab import Conditions, race
from tests.simulations.repetitions import TIMES
from tests.simulations.response_surface import surface_of
from traindyno.figures.estimates import Interval

SUITES = 40
# Drawn after the method was written; other seeds are as good.
SEED = 5100
LED = tuple(log(1 + lead) for lead in (0.0, 0.03, 0.05, 0.08))
HOSTS_OF_ONE_PERCENT = [Conditions(noise=noise, hosts=0.01) for noise in (0.003, 0.01)]
ONE_JOB_IN_FOUR_SLOW = Conditions(noise=0.005, hosts=0.0, slow_hosts=(0.25, log(1.12)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The held intervals of a race, and the width of the mean's interval, as a share;
    ``is_within``: whether no mean is wider than its one run.
    """

    run: Share
    ratios: Share
    width: float
    is_within: bool


def measure(
    levels: tuple[float, ...], conditions: Conditions, suites: int, seed: int = SEED
) -> Held:
    surface = surface_of("figures", [1000.0 * exp(level) for level in levels])
    truth = dict(zip((cell.cell_id for cell in surface.suite_cells), map(exp, levels), strict=True))
    runs = list[bool]()
    ratios = list[bool]()
    widths = list[float]()
    within = True
    for number in range(suites):
        verdict = race(surface, seed + number, conditions).verdict
        row = verdict.best
        source = Random(f"later {seed} {number}")
        if row is None or row.seconds is None or row.prediction is None:
            continue
        mean = row.seconds.interval
        run = row.prediction.seconds
        if mean is None or run is None:
            continue
        share, slower = conditions.slow_hosts
        host = source.gauss(0, conditions.hosts) + slower * (source.random() < share)
        runs.append(
            _holds(run, 1000 * truth[row.cell_id] * exp(host + source.gauss(0, conditions.noise)))
        )
        widths.append(mean.high / mean.low - 1)
        within = within and run.low <= mean.low and mean.high <= run.high
        ratios += [
            _holds(rival.comparison.interval, truth[row.cell_id] / truth[rival.cell_id])
            for rival in verdict.rivals
            if rival.comparison.interval
        ]
    return Held(run=share_of(runs), ratios=share_of(ratios), width=fmean(widths), is_within=within)


def _holds(interval: Interval, value: float) -> bool:
    return interval.low <= value <= interval.high


@pytest.mark.parametrize("conditions", HOSTS_OF_ONE_PERCENT, ids=lambda host: f"{host.noise:.1%}")
def test_figures_hold_and_are_narrow_with_truthful_trials(
    conditions: Conditions,
) -> None:
    measures = [measure(levels, conditions, SUITES * TIMES) for levels in ((0.0, 0.0), LED)]
    run = Share(
        hits=sum(figures.run.hits for figures in measures),
        count=sum(figures.run.count for figures in measures),
    )
    assert run.share >= 0.87 - run.error(0.87)
    for figures in measures:
        assert figures.ratios.share >= 0.90 - figures.ratios.error(0.90)
        assert figures.width <= 0.15  # most races saw one draw of hosts
        assert figures.is_within


@pytest.mark.parametrize("levels", [(0.0,) * 4, LED], ids=["equal", "led"])
def test_one_run_holds_in_three_of_four_suites_with_one_job_in_four_on_a_slow_host(
    levels: tuple[float, ...],
) -> None:
    """A race with one job has seen no slow host, or no other one."""
    figures = measure(levels, ONE_JOB_IN_FOUR_SLOW, SUITES * TIMES)
    assert figures.run.share >= 0.75 - figures.run.error(0.75)
    assert figures.ratios.share >= 0.90 - figures.ratios.error(0.90)
    assert figures.is_within
