"""The estimates that `init` made of a suite's cells, kept in the suite until they were measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from traindyno.core.documents.field_description import COUNT, POSITIVE, describe, described


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """An estimate; ``low`` and ``high`` are the ends of its 90 % interval."""

    mean: float = field(metadata=describe("what is estimated", bound=POSITIVE))
    low: float = field(metadata=describe("the lower end of its 90 % interval", bound=POSITIVE))
    high: float = field(metadata=describe("the upper end", bound=POSITIVE))

    def scaled(self, factor: float) -> "Estimated":
        return Estimated(mean=self.mean * factor, low=self.low * factor, high=self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEstimate:
    """The estimates of one cell.

    ``seconds`` and ``usd`` are of training on all examples, without a job's start. ``memory_bytes``
    are of one device.
    """

    memory_bytes: Estimated | None = None
    seconds: Estimated | None = None
    usd: Estimated | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEstimates:
    """Estimates that a suite keeps; they count only for this workload.

    ``cells`` has them by cell id, so that a changed cell has none.
    """

    examples: int = field(metadata=describe("the examples of the workload", bound=COUNT))
    sequence_length: int = field(
        metadata=describe("the sequence length of the workload", bound=COUNT)
    )
    cells: Mapping[str, CellEstimate]


@dataclass(frozen=True, kw_only=True)
class EstimatesSection:
    estimates: KeptEstimates | None = described(
        None,
        (
            "what `init` estimated of the cells; reports and `list --projected` compare it with "
            "what was measured"
        ),
    )
