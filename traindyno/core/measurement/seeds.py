"""Which trials are draws of the seed. Trials with one seed are one draw, however many they are.

The seed decides the first weights, the order of the data and dropout, and with them the losses and the time until a
quality is reached. The time of a step does not depend on it. A simulated run does not train: it is no draw.
"""

from collections.abc import Sequence

from traindyno.core.measurement.run_result import RunResult


def seeds_of(results: Sequence[RunResult]) -> tuple[int, ...] | None:
    """The different seeds with which these runs trained, in order. None if one shows no seed, or is simulated."""
    found = {None if result.is_simulated else result.seed for result in results}
    return None if None in found else tuple(sorted(seed for seed in found if seed is not None))


def are_draws_of_seeds(results: Sequence[RunResult]) -> bool:
    """Whether each run shows a seed of its own."""
    return len(seeds_of(results) or ()) == len(results)
