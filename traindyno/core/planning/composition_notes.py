"""Cautions about degrees that work and that people who know avoid."""

from collections.abc import Iterator, Sequence

from traindyno.core.suite.processes import Degrees, degrees_of, neighbour_count, world_size
from traindyno.core.suite.suite import Cell


def composition_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """One sentence for each caution; none where the number of devices is unknown."""
    for cell in cells:
        processes = world_size(cell.settings)
        if processes is not None:
            degrees = degrees_of(cell.settings, processes)
            yield from _notes(cell, degrees, neighbour_count(cell.settings, processes))


def _notes(cell: Cell, degrees: Degrees, per_instance: int) -> Iterator[str]:
    what = f"cell {cell.label} ({cell.cell_id})"
    if per_instance % degrees.tensor:
        yield (
            f"{what}: a tensor group of {degrees.tensor} processes spans instances of {per_instance} devices, and its"
            " processes exchange activations twice in each block; a tensor_degree that divides"
            f" {per_instance} keeps it within one"
        )
    uneven = {name: getattr(degrees, name) for name in ("tensor", "pipeline")}
    for name, degree in uneven.items():
        if degree & (degree - 1):
            yield f"{what}: {name}_degree {degree} is no power of two, so that few numbers of heads and blocks divide"
