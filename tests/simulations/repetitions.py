"""How often a simulation is repeated: as given, or as often as TRAINDYNO_SIMULATIONS says."""

import os
import random
from collections.abc import Iterator

VARIABLE = "TRAINDYNO_SIMULATIONS"


def repetitions(count: int, name: str) -> Iterator[random.Random]:
    """A source of random numbers for each repetition; the same ones each time. Simulations of one name share them."""
    for repetition in range(count * int(os.environ.get(VARIABLE, "1"))):
        yield random.Random(f"{name}:{repetition}")
