"""Two cells that each ran on one host, beside cells on several: the interval of their ratio has the
spread of hosts.
"""

import random
from itertools import pairwise
from math import exp
from statistics import fmean

import pytest

from tests.simulations.decisions import VALUE, figures_of
from tests.simulations.repetitions import TIMES
from tests.unit.run_samples import known
from traindyno.figures.host_means import update_prior
from traindyno.figures.hosts import STATED_PRIOR
from traindyno.figures.model import correlated, fit_model
from traindyno.figures.trials import Trial

SUITES = 200 * TIMES


def trials_on(
    source: random.Random, name: str, hosts: int, trials: int, *, spread: float, noise: float = 0.01
) -> list[Trial]:
    trials_of_hosts = []
    for host in range(hosts):
        speed = source.gauss(0, spread)
        ids = frozenset({f"{name} {host}"})
        trials_of_hosts += [
            Trial(value=exp(speed + source.gauss(0, noise)), hosts=ids) for _ in range(trials)
        ]
    return trials_of_hosts


def is_held(source: random.Random, hosts: int, spread: float) -> bool:
    """Whether the interval of two equal cells holds the truth. A third one shows its ``hosts``."""
    cells = [
        trials_on(source, name, count, trials, spread=spread)
        for name, count, trials in (("a", 1, 5), ("b", 1, 5), ("c", hosts, 2))
    ]
    figures = figures_of(cells)
    first, second, _ = figures.cells
    comparison = known(correlated(fit_model(figures), VALUE).compare(first, second, VALUE))
    assert comparison.interval is not None
    return comparison.interval.low <= 1 <= comparison.interval.high


@pytest.mark.parametrize(
    ("hosts", "spread", "least"),
    [*((hosts, 0.02, 0.93) for hosts in (3, 4, 5, 6)), (4, 0.03, 0.88)],
)
def test_the_interval_holds_with_few_draws_of_hosts(
    hosts: int, spread: float, least: float
) -> None:
    """Up to the stated spread of 2 % in 95 % of suites; with half as much more, the prior is too
    narrow.
    """
    source = random.Random(f"hosts {hosts} {spread}")
    held = fmean(is_held(source, hosts, spread) for _ in range(SUITES))
    assert held >= least - 2 * (least * (1 - least) / SUITES) ** 0.5


def test_no_number_of_draws_replaces_the_prior_at_once() -> None:
    """Hosts that seem alike by chance narrow the spread little by little, and never to 0."""
    source = random.Random("alike")
    deviations = [STATED_PRIOR.deviation]
    for hosts in range(2, 9):
        cells = trials_on(source, "c", hosts, 2, spread=0.0, noise=0.0)
        deviations.append(known(update_prior([cells], source="these")).deviation)
    assert deviations == sorted(deviations, reverse=True)
    assert all(0.8 * before < after for before, after in pairwise(deviations))
