"""What trials can't decide about a cell's figure, however many there are: a range of factors, beside its noise."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Logarithms of the factors by which the truth may lie beside the figure: ``low`` <= 0 <= ``high``."""

    low: float = 0.0
    high: float = 0.0

    @property
    def is_empty(self) -> bool:
        return self.low == self.high

    def plus(self, other: "Range") -> "Range":
        return Range(low=self.low + other.low, high=self.high + other.high)

    def inverse(self) -> "Range":
        """That of 1 ÷ the figure."""
        return Range(low=-self.high, high=-self.low)


NO_RANGE = Range()


def range_to(value: float) -> Range:
    """From no factor to this logarithm of one."""
    return Range(low=min(0.0, value), high=max(0.0, value))
