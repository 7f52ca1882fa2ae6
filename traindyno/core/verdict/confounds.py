"""What differs between two cells besides the setting under test."""

import json
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.run.processes import planned_batch_size, planned_learning_rate, world_size
from traindyno.core.run.settings import (
    HYPERPARAMETER_PREFIX,
    BatchSearch,
    Effect,
    LearningRate,
    options_of_strategies,
    settings_with,
)
from traindyno.core.run.workload import Workload
from traindyno.core.suite.arguments import arguments_of, with_all_arguments
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import LearningRateScaling, Task
from traindyno.core.suite.suite_file import cell_values
from traindyno.core.verdict.conditions import Confound, Difference
from traindyno.core.verdict.global_batches import GlobalBatches

Versions = Mapping[str, str]

LearningKey = tuple[Hashable, ...]
THREADS = "threads of a process"
# They determine how many replicas of the model share a global batch.
PLACEMENTS = settings_with(Effect.PLACEMENT, Effect.DEGREE)


def versions_of(cell: Cell, facts: Mapping[str, Any]) -> Versions:
    """The versions of packages that a trial of the cell reported, and, where no accelerator
    computes, the threads of a process.
    """
    reported = facts.get("versions")
    threads = facts.get("thread_settings")
    versions = {}
    if isinstance(reported, Mapping):
        versions = {name: str(version) for name, version in reported.items()}
    kind = find_instance_type(cell.settings.instance)
    if isinstance(threads, Mapping) and not (kind and kind.has_accelerator):
        count = threads.get("torch", threads.get("OMP_NUM_THREADS"))
        versions |= {} if count is None else {THREADS: str(count)}
    return versions


def find_confound(
    first: Cell,
    second: Cell,
    *,
    workload: Workload,
    samples_per_step: Mapping[str, int] = MappingProxyType({}),
    versions: Mapping[str, Versions] = MappingProxyType({}),
) -> Confound | None:
    """None if the two cells differ in one setting only.

    By cell id, ``samples_per_step`` is what the step logs of all ranks measured, ``versions`` what
    the runs reported, their threads with it.
    """
    batches = GlobalBatches(
        task=workload.task, measured=samples_per_step, examples=workload.examples
    )
    first, second = (with_all_arguments(cell, workload) for cell in (first, second))
    changed = _independent_changes(first, second, batches)
    differences = [
        Difference(name=name, first=_value_text(first, name), second=_value_text(second, name))
        for name in changed
    ]
    differences += _derived_differences(first, second, changed, batches)
    one = versions.get(first.cell_id, {})
    other = versions.get(second.cell_id, {})
    differences += [
        Difference(name=name, first=one[name], second=other[name])
        for name in sorted(one.keys() & other.keys())
        if one[name] != other[name]
    ]
    if len(differences) < 2:
        return None
    return Confound(
        first_cell_id=first.cell_id,
        second_cell_id=second.cell_id,
        differences=tuple(differences),
    )


def _independent_changes(first: Cell, second: Cell, batches: GlobalBatches) -> list[str]:
    """Leaves out changes that follow from others: a strategy's own options, batches that keep the
    global batch, and steps that keep the examples.
    """
    following = batches.steps_that_follow(first, second)
    changed = [name for name in _changed_fields(first, second) if name not in following]
    if "strategy" in changed:
        changed = [name for name in changed if name not in options_of_strategies()]
    if set(PLACEMENTS).intersection(changed) and "gradient_accumulation_steps" not in changed:
        batch = batches.of(first)
        if batch is not None and batch == batches.of(second):
            divider = batches.divider(first, second)
            changed = [name for name in changed if name != divider]
    return changed


def _changed_fields(first: Cell, second: Cell) -> list[str]:
    one = cell_values(first)
    other = cell_values(second)
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def learning_key(cell: Cell, workload: Workload, samples_per_step: int | None) -> LearningKey:
    """Cells with the same key should have the same losses.

    ``samples_per_step``: as the step log measured it.

    Scripts whose batch is not known are compared on the same number of processes only.
    """
    learning = tuple(getattr(cell.settings, name) for name in settings_with(Effect.LEARNING))
    arguments = json.dumps(dict(arguments_of(cell, workload)), sort_keys=True, default=str)
    if workload.task is not Task.SCRIPT:
        is_searched = cell.settings.batch_search is not None
        batch = samples_per_step if is_searched else planned_batch_size(cell.settings)
        return (*learning, arguments, batch, planned_learning_rate(cell.settings))
    processes = world_size(cell.settings) if samples_per_step is None else None
    return (*learning, arguments, samples_per_step, processes)


def _derived_differences(
    first: Cell, second: Cell, changed: list[str], batches: GlobalBatches
) -> list[Difference]:
    sizes = [batches.of(cell) for cell in (first, second)]
    rates = [planned_learning_rate(cell.settings) for cell in (first, second)]
    is_known = batches.is_planned or None not in sizes
    derived: Mapping[str, Sequence[float | None]] = {
        "global batch": sizes if is_known and not batches.is_only_batch(changed) else [],
        "learning rate": rates if batches.is_planned and "learning_rate" not in changed else [],
    }
    return [
        Difference(name=name, first=_known(pair[0]), second=_known(pair[1]))
        for name, pair in derived.items()
        if len({*pair}) > 1
    ]


def _value_text(cell: Cell, name: str) -> str:
    if name.startswith(HYPERPARAMETER_PREFIX):
        value = cell.hyperparameters.get(name.removeprefix(HYPERPARAMETER_PREFIX))
    else:
        value = getattr(cell.settings, name)
    return "none" if name == "adapter" and value is None else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, LearningRate):
        scaled = (
            f" at batch {value.reference_batch_size}"
            if value.scale_with is not LearningRateScaling.NONE
            else ""
        )
        return f"{value.base:g}{scaled}"
    if isinstance(value, BatchSearch):
        return f"search: {value.search}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | Mapping):
        return json.dumps(value)
    return "default" if value is None else str(value)


def _known(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
