"""How tensor parallelism divides the layers of a model.

Paths are relative to the base model (``model.base_model``), ``*`` stands for one name, as in
transformers' own plans.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

COLUMNS = "colwise"
ROWS = "rowwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPlan:
    """The layers to divide, with their styles by path."""

    styles: Mapping[str, str]
    #: The attributes that count heads or their features.
    per_rank: tuple[str, ...] = ()
    #: The number of projections in a layer that has several.
    fused: Mapping[str, int] = field(default_factory=dict)
    #: transformers' plan for experts, each of which is whole on one rank: first their weights, then
    #: their modules.
    experts: Mapping[str, str] = field(default_factory=dict)


def plan_of_blocks(
    block: str,
    *,
    columns: str,
    rows: str,
    per_rank: str = "",
    fused: Mapping[str, int] | None = None,
) -> TensorPlan:
    """The plan of a model of equal blocks. Names are within a block, divided by spaces."""

    def paths(names: str) -> tuple[str, ...]:
        return tuple(f"{block}.{name}" for name in names.split())

    return TensorPlan(
        styles={**dict.fromkeys(paths(columns), COLUMNS), **dict.fromkeys(paths(rows), ROWS)},
        per_rank=paths(per_rank),
        fused={f"{block}.{name}": count for name, count in (fused or {}).items()},
    )
