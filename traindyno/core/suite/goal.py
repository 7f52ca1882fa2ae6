"""The goal of a suite, and the further prices that its measurements are compared at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from traindyno.core.documents.field_description import (
    NOT_NEGATIVE,
    POSITIVE,
    Bound,
    describe,
    described,
)
from traindyno.core.run.record import QualityTarget
from traindyno.core.suite.choices import GoalKind, Quality

# Bounds that only keep numbers within what a database row and 64 bits can hold.
USD = Bound(above=0, most=1_000_000_000)
HOURS = Bound(above=0, most=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    kind: GoalKind
    hours: Decimal | None = described(None, "the longest acceptable time", bound=HOURS)
    usd: Decimal | None = described(None, "the highest acceptable cost", bound=USD)
    accuracy: float | None = described(
        None, "the evaluation accuracy to reach, a share", bound=Bound(above=0, most=1)
    )
    loss: float | None = described(None, "the evaluation loss to reach", bound=POSITIVE)
    perplexity: float | None = described(
        None, "the evaluation perplexity to reach", bound=Bound(above=1)
    )

    @property
    def target(self) -> QualityTarget | None:
        """Target of quality, or None if the goal is for the whole workload."""
        values = {quality: getattr(self, quality.value) for quality in Quality}
        return next(
            (
                QualityTarget(quality=name, value=value)
                for name, value in values.items()
                if value is not None
            ),
            None,
        )

    @property
    def is_time(self) -> bool:
        """Whether time decides between the cells that qualify, rather than cost."""
        return self.kind in (GoalKind.FASTEST, GoalKind.FASTEST_WITHIN, GoalKind.FASTEST_TO)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTerms:
    """Expectations for spot instances of one type; what the suite's own runs show weighs more, hour
    by hour.
    """

    discount: float = field(
        metadata=describe(
            "the share of the on-demand price that spot saves", bound=Bound(least=0, most=1)
        )
    )
    interruptions_per_hour: float | None = described(
        None,
        "interruptions of one job per hour of training; in a suite with several numbers of "
        "instances, the interruptions of a job with the fewest",
        bound=NOT_NEGATIVE,
        default="0.05 for each instance, an assumption",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """Further prices for the same measurements. They change the report, and no run."""

    spot: Mapping[str, SpotTerms] = described(
        {},
        "instance type → {discount, interruptions_per_hour}; an observed discount counts before "
        "this, and the rate weighs as much as one observed hour",
    )
