"""Samples of a step of all processes, and the changes of a script's arguments that follow from
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from traindyno.core.run.processes import planned_batch_size, world_size
from traindyno.core.run.settings import HYPERPARAMETER_PREFIX, Effect, settings_with
from traindyno.core.suite.arguments import number_of
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalBatches:
    """The global batches of the cells, which have all of their script's arguments.

    ``measured`` has for the id of a cell the samples of a step of all ranks.
    """

    task: Task
    measured: Mapping[str, int]
    examples: int

    @property
    def is_planned(self) -> bool:
        """A script sees neither the batch size per device nor the learning rate of the settings."""
        return self.task is not Task.SCRIPT

    def of(self, cell: Cell) -> int | None:
        is_known = self.is_planned and cell.settings.batch_search is None
        return planned_batch_size(cell.settings) if is_known else self.measured.get(cell.cell_id)

    def divider(self, first: Cell, second: Cell) -> str | None:
        """The setting or argument that is the batch of each process.

        For a script: the only argument that, multiplied by the processes, is the measured batch of
        both cells.
        """
        if self.is_planned:
            return "batch_size_per_device"
        dividing = [
            name
            for name in first.hyperparameters
            if all(self._divides(name, cell) for cell in (first, second))
        ]
        return f"{HYPERPARAMETER_PREFIX}{dividing[0]}" if len(dividing) == 1 else None

    def steps_that_follow(self, first: Cell, second: Cell) -> frozenset[str]:
        """A script's numbers of steps that end both cells after as many examples."""
        one = self.of(first)
        other = self.of(second)
        divider = self.divider(first, second)
        if self.is_planned or divider is None or one is None or other is None or one == other:
            return frozenset()
        names = set()
        for name in first.hyperparameters:
            steps = number_of(first.hyperparameters[name])
            more = number_of(second.hyperparameters.get(name))
            if (
                steps is None
                or more is None
                or steps == more
                or not (steps.is_integer() and more.is_integer())
            ):
                continue
            examples = min(int(steps) * one, int(more) * other)
            is_equal = all(
                -(-examples // batch) == count for batch, count in ((one, steps), (other, more))
            )
            if is_equal and ("step" in name or "iter" in name or -(-self.examples // one) == steps):
                names.add(f"{HYPERPARAMETER_PREFIX}{name}")
        return frozenset(names)

    def is_only_batch(self, changed: list[str]) -> bool:
        """Whether another global batch is what was changed, and no difference of its own."""
        if len(changed) != 1:
            return False
        if self.is_planned:
            return changed[0] in settings_with(Effect.BATCH)
        return changed[0].startswith(HYPERPARAMETER_PREFIX)

    def _divides(self, name: str, cell: Cell) -> bool:
        size = number_of(cell.hyperparameters.get(name))
        processes = world_size(cell.settings)
        return size is not None and processes is not None and size * processes == self.of(cell)
