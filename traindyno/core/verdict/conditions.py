"""On what an answer depends: the prices and amounts of work up to which it holds, and what else
differs between the cells.
"""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The price of ``instance`` at which a cell costs as much as the recommended one."""

    cell_id: str
    instance: str
    usd_per_instance_hour: Decimal
    now_usd_per_instance_hour: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """The amount of work below which a cell is ahead of the recommended one: it has less overhead,
    and more for each sample.
    """

    cell_id: str
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Prices and amounts of work at which a cell that the recommended one beats would be as
    good.
    """

    break_evens: tuple[BreakEven, ...] = ()
    crossovers: tuple[Crossover, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confound:
    """A pair of cells that differ in several settings, so that no effect is measured alone."""

    first_cell_id: str
    second_cell_id: str
    differences: tuple[Difference, ...]
