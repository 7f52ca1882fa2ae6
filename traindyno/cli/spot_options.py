"""The options of `traindyno plan` that say what to assume about spot instances."""

from typing import Annotated

import typer

from traindyno.core.costs.spot import SpotAssumption
from traindyno.core.errors import TraindynoError

SpotDiscountOption = Annotated[
    float | None,
    typer.Option(help="Assume that spot saves this share of the on-demand price: 0.6 is 60 %.", min=0, max=0.99),
]
SpotInterruptionsOption = Annotated[
    float | None, typer.Option(help="Assume so many spot interruptions per hour of a job.", min=0, max=60)
]


class SpotAssumptionIncomplete(TraindynoError):
    """One of the two options was given without the other."""


def read_spot_assumption(discount: float | None, interruptions: float | None) -> SpotAssumption | None:
    """None without the options. Raises SpotAssumptionIncomplete."""
    if discount is None and interruptions is None:
        return None
    if discount is None or interruptions is None:
        missing = "--spot-discount" if discount is None else "--spot-interruptions"
        raise SpotAssumptionIncomplete(f"expected --spot-discount and --spot-interruptions together, got no {missing}")
    return SpotAssumption(discount=discount, interruptions_per_hour=interruptions)
