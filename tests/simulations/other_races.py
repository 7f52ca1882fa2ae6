"""What the race is compared with, in the same jobs at the same costs: successive halving and random
search.

Both select by one number for each cell and test nothing, so that they spend no further jobs on
claims.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from random import Random

from tests.simulations.race_lab import (
    FAILING_SECONDS,
    FIRST_LOOK,
    Conditions,
    grid_seconds,
    run_steps,
    step_seconds,
)
from tests.simulations.response_surface import Surface

# Of the cells, this part goes on to so many times the steps.
FACTOR = 3


def halve(surface: Surface, seed: int, conditions: Conditions) -> tuple[float, float]:
    """Share of the grid's billable seconds, and the regret of the cell that is left (Jamieson and
    Talwalkar 2016).
    """
    source = Random(f"halving {surface.name} {seed}")
    left = list(surface.by_id)
    spent = 0.0
    steps = FIRST_LOOK
    while True:
        values, cost = _measure(surface, left, steps, conditions, source)
        spent += cost
        left = sorted(values, key=lambda cell_id: values[cell_id])[: max(1, len(left) // FACTOR)]
        if len(left) == 1:
            return spent / grid_seconds(surface, conditions), surface.regret(left[0])
        steps *= FACTOR


def sample(surface: Surface, seed: int, conditions: Conditions, *, share: float) -> float:
    """The regret of the best of as many cells, drawn at random and run once each, as ``share`` of
    the grid pays.
    """
    source = Random(f"sample {surface.name} {seed}")
    order = source.sample(list(surface.by_id), len(surface.by_id))
    best = float("inf")
    for count in range(1, len(order) + 1):
        values, cost = _measure(
            surface, order[:count], 10**9, conditions, Random(f"{surface.name} {seed}")
        )
        if count > 1 and cost > share * grid_seconds(surface, conditions):
            break
        best = surface.regret(min(values, key=lambda cell_id: values[cell_id])) if values else best
    return best


def _measure(
    surface: Surface,
    cell_ids: Sequence[str],
    most_steps: int,
    conditions: Conditions,
    source: Random,
) -> tuple[Mapping[str, float], float]:
    """What each cell that completes shows of what the goal minimises, and the billed seconds of
    their jobs.
    """
    jobs = SimpleJobs(surface=surface, conditions=conditions, source=source)
    values = dict[str, float]()
    for cell_id in cell_ids:
        value = surface.value(cell_id)
        level = jobs.begin(cell_id)
        steps = min(most_steps, run_steps(surface, surface.by_id[cell_id]))
        jobs.spend_steps(cell_id, steps)
        if value:
            values[cell_id] = value * level * jobs.step_noise(steps)
    return values, jobs.spent


@dataclass(kw_only=True)
class SimpleJobs:
    """One job for each group of cells on the same instances.

    ``spent``: billed seconds of all instances so far.
    """

    surface: Surface
    conditions: Conditions
    source: Random
    spent: float = 0.0
    hosts: dict[tuple[str, int], float] = field(default_factory=dict)

    def begin(self, cell_id: str) -> float:
        """Starts a run, and its job if it is the first.

        Returns by which factor the run is slower.
        """
        cell = self.surface.by_id[cell_id]
        cold = 1.0
        count = self.surface.instances(cell)
        group = (str({**self.surface.training, **cell.settings}["instance"]), count)
        if group not in self.hosts:
            self.hosts[group] = exp(self.source.gauss(0, self.conditions.hosts))
            cold = 1 + self.conditions.cold
            self.spent += self.conditions.job_start * count
        self.spent += self.conditions.run_start * count
        return self.hosts[group] * cold * exp(self.source.gauss(0, self.conditions.noise))

    def spend_steps(self, cell_id: str, steps: int) -> None:
        """A cell that fails does so in its first steps, whatever their number."""
        cell = self.surface.by_id[cell_id]
        seconds = step_seconds(self.surface, cell) * steps if cell.seconds else FAILING_SECONDS
        self.spent += seconds * self.surface.instances(cell)

    def step_noise(self, steps: int) -> float:
        """The factor that the mean of so many steps is off by."""
        return exp(self.source.gauss(0, self.conditions.step_noise / steps**0.5))
