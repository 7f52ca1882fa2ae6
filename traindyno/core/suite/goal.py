"""The goal of a suite: the cheapest or fastest cell, for the whole workload or to a quality."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from traindyno.core.documents.field_description import POSITIVE, Bound, describe
from traindyno.core.suite.choices import GoalKind, Quality

# Bounds that only keep numbers within what a database row and 64 bits can hold.
USD = Bound(above=0, most=1_000_000_000)
HOURS = Bound(above=0, most=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityTarget:
    """The quality that a run must reach: accuracy of at least ``value``, loss or perplexity of at most ``value``."""

    quality: Quality
    value: float

    def __str__(self) -> str:
        return f"{self.quality} {self.text(self.value)}"

    def text(self, value: float) -> str:
        """The text of a value of this quality: ``90 %``, ``2.5``."""
        return f"{value * 100:.4g} %" if self.quality is Quality.ACCURACY else f"{value:.4g}"

    def is_reached(self, value: float) -> bool:
        return value >= self.value if self.quality is Quality.ACCURACY else value <= self.value

    def best(self, values: Iterable[float]) -> float:
        return max(values) if self.quality is Quality.ACCURACY else min(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    kind: GoalKind
    hours: Decimal | None = field(default=None, metadata=describe("the longest acceptable time", bound=HOURS))
    usd: Decimal | None = field(default=None, metadata=describe("the highest acceptable cost", bound=USD))
    accuracy: float | None = field(
        default=None,
        metadata=describe("the evaluation accuracy to reach, a share", bound=Bound(above=0, most=1)),
    )
    loss: float | None = field(default=None, metadata=describe("the evaluation loss to reach", bound=POSITIVE))
    perplexity: float | None = field(
        default=None, metadata=describe("the evaluation perplexity to reach", bound=Bound(above=1))
    )

    @property
    def target(self) -> QualityTarget | None:
        """None if the goal is for the whole workload."""
        values = {quality: getattr(self, quality.value) for quality in Quality}
        return next(
            (QualityTarget(quality=name, value=value) for name, value in values.items() if value is not None), None
        )

    @property
    def is_time(self) -> bool:
        """Whether time decides between the cells that qualify, and not cost."""
        return self.kind in (GoalKind.FASTEST, GoalKind.FASTEST_WITHIN, GoalKind.FASTEST_TO)
