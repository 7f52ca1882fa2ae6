"""What the race is compared with, in the same jobs at the same costs: successive halving and random search.

Both select by one number for each cell and test nothing, so that they spend no further jobs on claims.
"""

from collections.abc import Mapping, Sequence
from math import exp
from random import Random

from tests.simulations.race_lab import FAILING_SECONDS, FIRST_LOOK, Conditions, grid_seconds, run_steps, step_seconds
from tests.simulations.response_surface import Surface

# Of the cells, this part goes on to so many times the steps.
FACTOR = 3


def halve(surface: Surface, seed: int, conditions: Conditions) -> tuple[float, float]:
    """Share of the grid's billable seconds, and the regret of the cell that is left (Jamieson and Talwalkar 2016)."""
    source, left, spent, steps = Random(f"halving {surface.name} {seed}"), list(surface.by_id), 0.0, FIRST_LOOK
    while True:
        values, cost = _measure(surface, left, steps, conditions, source)
        spent += cost
        left = sorted(values, key=lambda cell_id: values[cell_id])[: max(1, len(left) // FACTOR)]
        if len(left) == 1:
            return spent / grid_seconds(surface, conditions), surface.regret(left[0])
        steps *= FACTOR


def sample(surface: Surface, seed: int, conditions: Conditions, *, share: float) -> float:
    """The regret of the best of as many cells, drawn at random and run once each, as ``share`` of the grid pays."""
    source = Random(f"sample {surface.name} {seed}")
    order = source.sample(list(surface.by_id), len(surface.by_id))
    best = float("inf")
    for count in range(1, len(order) + 1):
        values, cost = _measure(surface, order[:count], 10**9, conditions, Random(f"{surface.name} {seed}"))
        if count > 1 and cost > share * grid_seconds(surface, conditions):
            break
        best = surface.regret(min(values, key=lambda cell_id: values[cell_id])) if values else best
    return best


def _measure(
    surface: Surface, cell_ids: Sequence[str], most_steps: int, conditions: Conditions, source: Random
) -> tuple[Mapping[str, float], float]:
    """What each cell that completes shows of what the goal minimises, and the billed seconds of their jobs."""
    values: dict[str, float] = {}
    hosts: dict[tuple[str, int], float] = {}
    spent = 0.0
    for cell_id in cell_ids:
        cell = surface.by_id[cell_id]
        count, cold = surface.instances(cell), 1.0
        group = (str({**surface.training, **cell.settings}["instance"]), count)
        if group not in hosts:
            hosts[group], cold = exp(source.gauss(0, conditions.hosts)), 1 + conditions.cold
            spent += conditions.job_start * count
        steps = min(most_steps, run_steps(surface, cell))
        seconds = step_seconds(surface, cell) * steps if cell.seconds else FAILING_SECONDS
        spent += (conditions.run_start + seconds) * count
        deviation = source.gauss(0, conditions.noise) + source.gauss(0, conditions.step_noise / steps**0.5)
        if value := surface.value(cell_id):
            values[cell_id] = value * hosts[group] * cold * exp(deviation)
    return values, spent
