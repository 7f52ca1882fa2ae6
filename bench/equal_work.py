"""Evidence that the two sides of a race do equal work: a figure without which the race's figures
say nothing.
"""

from bench.figures import Figure, at_most
from bench.race_case import Against, RaceCase, RaceResult

LOSS_DIFFERENCE = 1e-5
# Other kernels add in another order. Losses are compared in single precision, whatever the format
# of the race.
LOSS_DIFFERENCE_ON_A_GPU = 1e-3


def equal_work_figures(
    case: RaceCase, result: RaceResult, *, loss_difference: float = LOSS_DIFFERENCE
) -> tuple[Figure, ...]:
    """The figures that show equal work; none if only ours is run."""
    if not case.with_theirs:
        return ()
    if case.against is Against.ITS_DEFAULTS:
        name = "difference of the tokens that both count in the same rows"
        return (_check(f"{case.name}: {name}", result.token_count_difference, 0),)
    return (
        _check(
            f"{case.name}: largest difference of losses",
            result.largest_loss_difference,
            loss_difference,
        ),
    )


def _check(name: str, value: float | None, limit: float) -> Figure:
    return Figure(name=name, value=value, unit="", budget=at_most(limit), is_check=True)
