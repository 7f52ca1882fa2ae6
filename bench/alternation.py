"""Two things compared in turn, A B A B, so that other load of the machine affects both."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.figures import Spread, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Values of each round; ``ratio`` is second over first, ``difference`` second minus first,
    round by round.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def ratio(self) -> Spread:
        return spread([b / a for a, b in zip(self.first, self.second, strict=True)])

    @property
    def difference(self) -> Spread:
        return spread([b - a for a, b in zip(self.first, self.second, strict=True)])


def alternate(
    first: Callable[[], float], second: Callable[[], float], *, rounds: int
) -> Comparison:
    pairs = [(first(), second()) for _ in range(rounds)]
    return Comparison(first=tuple(a for a, _ in pairs), second=tuple(b for _, b in pairs))
