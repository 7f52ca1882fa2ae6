"""Further prices that a suite names for its measurements: regions, spot instances and training plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from traindyno.core.documents.field_description import NOT_NEGATIVE, POSITIVE, Bound, describe
from traindyno.core.suite.goal import USD


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTerms:
    """Expectations for spot instances of one type; what the suite's own runs show weighs more, hour by hour."""

    discount: float = field(
        metadata=describe("the share of the on-demand price that spot saves", bound=Bound(least=0, most=1))
    )
    interruptions_per_hour: float | None = field(
        default=None,
        metadata=describe(
            "interruptions of one job per hour of training; in a suite with several numbers of instances, those of a "
            "job with the fewest",
            bound=NOT_NEGATIVE,
            default="0.05 for each instance, an assumption",
        ),
    )
    checkpoint_hours: float | None = field(
        default=None,
        metadata=describe(
            "hours between two checkpoints of a run that writes any; its own step time and "
            "measurement.checkpoint_every_steps count before this",
            bound=POSITIVE,
            default="none: an interrupted job is priced as if it started again from its first step",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerms:
    """The price of reserved capacity."""

    usd_per_hour: Decimal = field(
        metadata=describe("for one instance: the plan's fee ÷ (instances × hours)", bound=USD)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """Further prices for the same measurements. They change the report, and no run."""

    regions: tuple[str, ...] = field(
        default=(), metadata=describe("regions whose on-demand prices are compared, such as us-west-2")
    )
    spot: Mapping[str, SpotTerms] = field(
        default_factory=dict,
        metadata=describe(
            "instance type → {discount, interruptions_per_hour, checkpoint_hours}; an observed discount counts before "
            "this, and the rate weighs as much as one observed hour"
        ),
    )
    training_plan: Mapping[str, PlanTerms] = field(
        default_factory=dict, metadata=describe("instance type → {usd_per_hour} of a SageMaker training plan")
    )
