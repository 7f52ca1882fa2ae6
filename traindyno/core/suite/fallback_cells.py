"""Cells whose jobs may run on another instance type: such a run belongs to a cell of that type."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from traindyno.core.suite.cell_label import SEPARATOR
from traindyno.core.suite.cells import expand_cells, identify
from traindyno.core.suite.suite import Cell, Run, Suite


def accepted_types(suite: Suite, instance_type: str) -> tuple[str, ...]:
    """The types in order of preference: the cell's own is the first."""
    return (instance_type, *suite.instance_preferences.get(instance_type, ()))


def needed_types(suite: Suite, cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for cell in cells for name in accepted_types(suite, cell.settings.instance)))


def cell_on(planned: Iterable[Cell], cell: Cell, instance_type: str) -> Cell:
    """The planned cell of these settings on that type, if there is one; else a new cell."""
    own = cell.settings.instance
    if instance_type == own:
        return cell
    settings = replace(cell.settings, instance=instance_type)
    cell_id = identify(settings, cell.hyperparameters)
    found = next((each for each in planned if each.cell_id == cell_id), None)
    names_type = own in cell.label
    label = cell.label.replace(own, instance_type) if names_type else f"{cell.label}{SEPARATOR}{instance_type}"
    return found or Cell(cell_id=cell_id, label=label, settings=settings, hyperparameters=cell.hyperparameters)


def run_on(suite: Suite, run: Run, instance_type: str) -> Run:
    """The same run, assigned to the cell of the type that it ran on. A batch that was found on another type is where
    the search on this one begins.
    """
    if instance_type == run.cell.settings.instance:
        return run  # a run's cell is built without the cells of the whole suite
    begin = run.found_batch or run.first_batch
    return replace(run, cell=cell_on(expand_cells(suite), run.cell, instance_type), found_batch=None, first_batch=begin)


def with_cells_of(cells: Sequence[Cell], runs: Iterable[Run]) -> tuple[Cell, ...]:
    """The planned cells, and the further cells that runs belong to."""
    known = {cell.cell_id for cell in cells}
    others = {run.cell.cell_id: run.cell for run in runs if run.cell.cell_id not in known}
    return (*cells, *others.values())
