"""The control cells that separate the effects of several differences; each is a cell that planning
accepts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.suite.arguments import number_of, with_all_arguments
from traindyno.core.suite.cells import Cell, baseline_point, is_in_grid, make_cell
from traindyno.core.suite.checks.suite_check import check_suite
from traindyno.core.suite.choices import TRAITS, Task
from traindyno.core.suite.processes import dividing_batches, planned_batch_size, world_size
from traindyno.core.suite.settings import (
    HYPERPARAMETER_PREFIX,
    Effect,
    options_of_strategies,
    settings_with,
)
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import cell_values

MOST_CONTROLS = 3
# They determine how many replicas of the model share a global batch.
PLACEMENTS = settings_with(Effect.PLACEMENT, Effect.DEGREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalBatches:
    """``measured``: cell id → the samples of a step of all ranks.

    The cells have all of their script's arguments.
    """

    task: Task
    measured: Mapping[str, int]
    examples: int = 0

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
        found = [
            name
            for name in first.hyperparameters
            if all(self._divides(name, cell) for cell in (first, second))
        ]
        return f"{HYPERPARAMETER_PREFIX}{found[0]}" if len(found) == 1 else None

    def steps_that_follow(self, first: Cell, second: Cell) -> Mapping[str, int]:
        """A script's numbers of steps that end both cells after as many examples, each with these
        examples.
        """
        one = self.of(first)
        other = self.of(second)
        divider = self.divider(first, second)
        if self.is_planned or divider is None or one is None or other is None or one == other:
            return {}
        found = {}
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
                found[f"{HYPERPARAMETER_PREFIX}{name}"] = examples
        return found

    def with_steps_that_follow(self, cell: Cell, first: Cell, second: Cell) -> Cell:
        """The cell with the steps that take as many examples as these two, at its own batch."""
        arguments = dict(cell.hyperparameters)
        divider = self.divider(first, second) or ""
        size = number_of(arguments.get(divider.removeprefix(HYPERPARAMETER_PREFIX)))
        for name, examples in self.steps_that_follow(first, second).items():
            key = name.removeprefix(HYPERPARAMETER_PREFIX)
            batch = int(size or 0) * (world_size(cell.settings) or 0)
            known = {self.of(each): each.hyperparameters[key] for each in (first, second)}
            steps = -(-examples // batch) if batch else None
            arguments[key] = known.get(
                batch, str(steps) if isinstance(arguments[key], str) else steps
            )
        return replace(cell, hyperparameters=arguments)

    def is_only_batch(self, changed: list[str]) -> bool:
        """Whether another global batch is what was changed, and no difference of its own."""
        is_batch = [name in settings_with(Effect.BATCH) for name in changed]
        return (
            is_batch == [True]
            if self.is_planned
            else len(changed) == 1 and changed[0].startswith(HYPERPARAMETER_PREFIX)
        )

    def with_batch(self, cell: Cell, batch: int | None, divider: str | None) -> Cell | None:
        """The cell with this global batch; None if it is unknown or can't be divided equally."""
        if batch is None or divider is None:
            return None
        if self.is_planned and cell.settings.global_batch_size is not None:
            settings = replace(cell.settings, global_batch_size=batch)
            processes = world_size(cell.settings)
            possible = dividing_batches(settings, processes) if processes else None
            is_kept = (
                bool(possible) if settings.batch_search else settings.batch_size in (possible or ())
            )
            return replace(cell, settings=settings) if is_kept else None
        if self.is_planned:
            own = planned_batch_size(
                cell.settings
            )  # None if a degree needs more processes than exist
            size, rest = divmod(cell.settings.batch_size * batch, own) if own else (0, 0)
            changed = replace(cell, settings=replace(cell.settings, batch_size_per_device=size))
            return changed if size and not rest else None
        name = divider.removeprefix(HYPERPARAMETER_PREFIX)
        processes = world_size(cell.settings)
        size, rest = divmod(batch, processes) if processes else (0, 0)
        if not size or rest:
            return None
        is_text = isinstance(cell.hyperparameters[name], str)
        return replace(
            cell, hyperparameters={**cell.hyperparameters, name: str(size) if is_text else size}
        )

    def _divides(self, name: str, cell: Cell) -> bool:
        size = number_of(cell.hyperparameters.get(name))
        processes = world_size(cell.settings)
        return size is not None and processes is not None and size * processes == self.of(cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A cell that differs in one setting less.

    ``include``: a suite's entry for it. ``cell_id`` is set if it exists.
    """

    cell_id: str | None
    include: Mapping[str, Any]
    isolates: str


def find_controls(
    first: Cell,
    second: Cell,
    changed: Sequence[str],
    *,
    suite: Suite,
    cells: Sequence[Cell],
    batches: GlobalBatches,
) -> tuple[Control, ...]:
    """``changed``: the settings and arguments in which the two cells differ.

    All cells have all of their arguments.
    """
    found = []
    baseline = with_all_arguments(make_cell(suite, baseline_point(suite)), suite.workload)
    for isolates, control in _candidates(first, second, changed, batches):
        if any(_is_same(control, cell) for cell in (first, second)):
            continue
        existing = next((cell.cell_id for cell in cells if _is_same(control, cell)), None)
        lacked = baseline.hyperparameters.keys() - control.hyperparameters.keys()
        entry = (
            None
            if lacked
            else {name: value_of(control, name) for name in changed_fields(baseline, control)}
        )
        if existing or (entry is not None and _is_accepted(suite, cells, control, entry)):
            values = cell_values(control)
            include = {name: values.get(name, value) for name, value in (entry or {}).items()}
            found.append(Control(cell_id=existing, include=include, isolates=isolates))
    return tuple(found[:MOST_CONTROLS])


def changed_fields(first: Cell, second: Cell) -> list[str]:
    one = cell_values(first)
    other = cell_values(second)
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _candidates(
    first: Cell, second: Cell, changed: Sequence[str], batches: GlobalBatches
) -> Iterator[tuple[str, Cell]]:
    """The effect that each control would show alone, and the control."""
    together: set[str] = set()
    if "image" in changed:
        together |= {"image", "compiler", "strategy"}
    if _kind(first) != _kind(second):
        together |= {"instance", "image", "compiler"}
    joint = tuple(name for name in changed if name in together)
    units = [*([joint] if joint else []), *((name,) for name in changed if name not in together)]
    divider = batches.divider(first, second)
    if len(units) == 1:
        same_batch = batches.with_batch(second, batches.of(first), divider)
        if same_batch is not None:
            yield " and ".join(units[0]), batches.with_steps_that_follow(same_batch, first, second)
        return
    for names in units:
        own = [name for name in names if not name.startswith(HYPERPARAMETER_PREFIX)]
        options = options_of_strategies() if "strategy" in names else ()
        settings = replace(
            first.settings, **{name: getattr(second.settings, name) for name in (*own, *options)}
        )
        arguments = dict(first.hyperparameters)
        for name in (name.removeprefix(HYPERPARAMETER_PREFIX) for name in names if name not in own):
            arguments.pop(name, None)
            if name in second.hyperparameters:
                arguments[name] = second.hyperparameters[name]
        control = replace(first, settings=settings, hyperparameters=arguments)
        if set(PLACEMENTS).intersection(names):
            control = batches.with_batch(control, batches.of(first), divider) or control
        yield " and ".join(names), batches.with_steps_that_follow(control, first, second)


def _is_same(cell: Cell, other: Cell) -> bool:
    return (cell.settings, cell.hyperparameters) == (other.settings, other.hyperparameters)


def value_of(cell: Cell, name: str) -> Any:
    if name.startswith(HYPERPARAMETER_PREFIX):
        return cell.hyperparameters.get(name.removeprefix(HYPERPARAMETER_PREFIX))
    return getattr(cell.settings, name)


def _is_accepted(
    suite: Suite, cells: Sequence[Cell], control: Cell, entry: Mapping[str, Any]
) -> bool:
    """Whether the checks of planning accept it beside the baseline, and the suite's cells have its
    software.

    What the lab has images for is not known here, so that a control names no new combination.
    """
    is_excluded = entry.keys() <= suite.matrix.keys() and is_in_grid(suite, entry)
    if is_excluded or _platform(control) not in {_platform(cell) for cell in cells}:
        return False
    point = baseline_point(suite)
    alone = replace(
        suite,
        matrix={name: (value,) for name, value in point.items()},
        baseline={},
        include=(entry,),
        exclude=(),
    )
    return not list(check_suite(alone))


def _platform(cell: Cell) -> tuple[object, ...]:
    """What the image has to serve, and the image."""
    settings = cell.settings
    return (
        _kind(cell),
        settings.compiler,
        TRAITS[settings.strategy].sagemaker_collectives,
        settings.image,
    )


def _kind(cell: Cell) -> tuple[object, ...]:
    found = find_instance_type(cell.settings.instance)
    return (found.accelerator_kind, found.is_local) if found else ()
