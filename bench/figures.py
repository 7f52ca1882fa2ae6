"""A measured figure with its budget, which it may meet or not."""

from dataclasses import dataclass
from enum import StrEnum
from statistics import median


class Sense(StrEnum):
    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    sense: Sense
    limit: float

    def is_met(self, value: float) -> bool:
        return value <= self.limit if self.sense is Sense.AT_MOST else value >= self.limit


def at_most(limit: float) -> Budget:
    return Budget(sense=Sense.AT_MOST, limit=limit)


def at_least(limit: float) -> Budget:
    return Budget(sense=Sense.AT_LEAST, limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Median and range of repeated measurements."""

    median: float
    least: float
    most: float
    count: int


def spread(values: list[float]) -> Spread:
    return Spread(median=median(values), least=min(values), most=max(values), count=len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured figure."""

    name: str
    #: None if it could not be measured. The median of a spread is compared with the budget.
    value: float | Spread | None
    unit: str
    budget: Budget | None = None
    #: Whether it is evidence that two sides do equal work. If its budget isn't met, the section's
    #: other figures say nothing, and the benchmark fails.
    is_check: bool = False

    @property
    def is_met(self) -> bool | None:
        if self.budget is None or self.value is None:
            return None
        return self.budget.is_met(
            self.value.median if isinstance(self.value, Spread) else self.value
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The figures of one group, with notes."""

    title: str
    command: str
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    #: Why this machine can measure none of the figures.
    why_unmeasured: str | None = None

    def __post_init__(self) -> None:
        if bool(self.figures) is (self.why_unmeasured is not None):
            raise ValueError(f"{self.title}: expected figures or the reason why there are none")

    @property
    def failed_checks(self) -> tuple[Figure, ...]:
        """The checks that failed or could not be measured."""
        return tuple(figure for figure in self.figures if figure.is_check and not figure.is_met)
