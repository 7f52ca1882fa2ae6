"""The samples of a step of all processes: planned for a built-in task, as the step log measured them for a script."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from traindyno.core.documents.stored import JsonValue
from traindyno.core.suite.arguments import number_of
from traindyno.core.suite.choices import Task
from traindyno.core.suite.processes import dividing_batches, planned_batch_size, world_size
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX, Effect, settings_with
from traindyno.core.suite.suite import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalBatches:
    """``measured``: cell id → the samples of a step of all ranks. The cells have all of their script's arguments."""

    task: Task
    measured: Mapping[str, int]

    @property
    def is_planned(self) -> bool:
        """A script sees neither the batch size per device nor the learning rate of the settings."""
        return self.task is not Task.SCRIPT

    def of(self, cell: Cell) -> int | None:
        is_known = self.is_planned and cell.settings.batch_search is None
        return planned_batch_size(cell.settings) if is_known else self.measured.get(cell.cell_id)

    def divider(self, first: Cell, second: Cell) -> str | None:
        """The setting or argument that is the batch of each process.

        For a script: the only argument that, multiplied by the processes, is the measured batch of both cells.
        """
        if self.is_planned:
            return "batch_size_per_device"
        found = [name for name in first.hyperparameters if all(self._divides(name, cell) for cell in (first, second))]
        return f"{HYPERPARAMETER_PREFIX}{found[0]}" if len(found) == 1 else None

    def is_only_batch(self, changed: list[str]) -> bool:
        """Whether another global batch is what was changed, and no difference of its own."""
        if len(changed) != 1:
            return False
        return (
            changed[0] in settings_with(Effect.BATCH)
            if self.is_planned
            else changed[0].startswith(HYPERPARAMETER_PREFIX)
        )

    def with_batch(self, cell: Cell, batch: int | None, divider: str | None) -> Cell | None:
        """The cell with this global batch; None if it is unknown or can't be divided equally."""
        if batch is None or divider is None:
            return None
        if self.is_planned and cell.settings.global_batch_size is not None:
            return _with_global_batch(cell, batch)
        if self.is_planned:
            own = planned_batch_size(cell.settings)
            # No batch if a degree needs more processes than exist.
            size, rest = divmod(cell.settings.batch_size * batch, own) if own else (0, 0)
            return (
                replace(cell, settings=replace(cell.settings, batch_size_per_device=size))
                if size and not rest
                else None
            )
        name, processes = divider.removeprefix(HYPERPARAMETER_PREFIX), world_size(cell.settings)
        size, rest = divmod(batch, processes) if processes else (0, 0)
        if not size or rest:
            return None
        return replace(cell, hyperparameters={**cell.hyperparameters, name: _like(cell.hyperparameters[name], size)})

    def _divides(self, name: str, cell: Cell) -> bool:
        size, processes = number_of(cell.hyperparameters.get(name)), world_size(cell.settings)
        return size is not None and processes is not None and size * processes == self.of(cell)


def _with_global_batch(cell: Cell, batch: int) -> Cell | None:
    settings, processes = replace(cell.settings, global_batch_size=batch), world_size(cell.settings)
    possible = dividing_batches(settings, processes) if processes else None
    is_kept = bool(possible) if settings.batch_search else settings.batch_size in (possible or ())
    return replace(cell, settings=settings) if is_kept else None


def _like(value: JsonValue, number: int) -> JsonValue:
    """A text stays a text."""
    return str(number) if isinstance(value, str) else number
