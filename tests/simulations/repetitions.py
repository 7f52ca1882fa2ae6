"""How often a simulation is repeated: as given, or ten times as often in ``make nightly``; how
tables write shares.
"""

import random
from collections.abc import Iterator

from tests.nightly import NIGHTLY

TIMES = 10 if NIGHTLY else 1


def repetitions(count: int, name: str) -> Iterator[random.Random]:
    """A source of random numbers for each repetition; the same ones each time.

    Simulations of one name share them.
    """
    for repetition in range(count * TIMES):
        yield random.Random(f"{name}:{repetition}")


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f} %"
