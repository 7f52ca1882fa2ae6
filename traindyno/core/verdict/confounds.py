"""What differs between two cells besides the setting under test, and the control cell that separates the effects."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from traindyno.core.suite.choices import LearningRateScaling
from traindyno.core.suite.combinations import find_impossible
from traindyno.core.suite.processes import planned_batch_size, planned_learning_rate
from traindyno.core.suite.settings import Effect, LearningRate, Settings, options_of_strategies, settings_with
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import settings_document
from traindyno.core.suite.workload import Workload

Versions = Mapping[str, str]

MOST_CONTROLS = 3
SYSTEMATIC_SHARE = 0.5
# They determine how many replicas of the model share a global batch.
PLACEMENTS = settings_with(Effect.PLACEMENT, Effect.DEGREE)
LearningKey = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A cell that differs in one setting less. ``include``: a suite's entry for it. ``cell_id`` is set if it exists."""

    cell_id: str | None
    include: Mapping[str, Any]
    isolates: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confound:
    """``differences``: all settings in which the pair differs; with more than one, no effect is measured alone."""

    first_cell_id: str
    second_cell_id: str
    differences: tuple[Difference, ...]
    controls: tuple[Control, ...]


def find_confound(
    first: Cell,
    second: Cell,
    *,
    cells: Sequence[Cell],
    baseline: Cell,
    workload: Workload,
    warm_shares: Mapping[str, float | None] = MappingProxyType({}),
    versions: Mapping[str, Versions] = MappingProxyType({}),
) -> Confound | None:
    """None if the two cells differ in one setting only.

    By cell id, ``warm_shares`` is the share of its trials that started warm, and ``versions`` what its runs reported.
    """
    changed = _independent_changes(first, second)
    differences = [_difference(name, first, second) for name in changed]
    differences += _derived_differences(first.settings, second.settings, changed)
    differences += _different_starts(warm_shares.get(first.cell_id), warm_shares.get(second.cell_id))
    differences += _version_differences(versions.get(first.cell_id, {}), versions.get(second.cell_id, {}))
    if len(differences) < 2:
        return None
    controls = _controls(first, second, changed)
    possible = [(isolates, control) for isolates, control in controls if not find_impossible(control, workload)]
    return Confound(
        first_cell_id=first.cell_id,
        second_cell_id=second.cell_id,
        differences=tuple(differences),
        controls=tuple(_control(control, isolates, cells, baseline) for isolates, control in possible[:MOST_CONTROLS]),
    )


def changed_fields(first: Cell, second: Cell) -> list[str]:
    names = [
        field.name
        for field in fields(Settings)
        if getattr(first.settings, field.name) != getattr(second.settings, field.name)
    ]
    given = sorted({*first.hyperparameters, *second.hyperparameters})
    return names + [
        f"hyperparameters.{name}"
        for name in given
        if first.hyperparameters.get(name) != second.hyperparameters.get(name)
    ]


def _independent_changes(first: Cell, second: Cell) -> list[str]:
    """Without the changes that follow from others: a strategy's own options, and batches that keep the global batch."""
    changed = changed_fields(first, second)
    if "strategy" in changed:
        changed = [name for name in changed if name not in options_of_strategies()]
    if (
        set(settings_with(Effect.PLACEMENT, Effect.DEGREE)).intersection(changed)
        and "gradient_accumulation_steps" not in changed
    ):
        batch = planned_batch_size(first.settings)
        if batch is not None and batch == planned_batch_size(second.settings):
            changed = [name for name in changed if name != "batch_size_per_device"]
    return changed


def learning_key(cell: Cell) -> LearningKey:
    """Cells with the same key should have the same losses."""
    return (
        *(getattr(cell.settings, name) for name in settings_with(Effect.LEARNING)),
        json.dumps(cell.hyperparameters, sort_keys=True, default=str),
        planned_batch_size(cell.settings),
        planned_learning_rate(cell.settings),
    )


def _derived_differences(first: Settings, second: Settings, changed: Sequence[str]) -> list[Difference]:
    found = []
    batches = planned_batch_size(first), planned_batch_size(second)
    if batches[0] != batches[1] and not (len(changed) == 1 and changed[0] in settings_with(Effect.BATCH)):
        found.append(Difference(name="global batch", first=_known(batches[0]), second=_known(batches[1])))
    rates = planned_learning_rate(first), planned_learning_rate(second)
    if rates[0] != rates[1] and "learning_rate" not in changed:
        found.append(Difference(name="learning rate", first=_known(rates[0]), second=_known(rates[1])))
    return found


def _different_starts(first: float | None, second: float | None) -> list[Difference]:
    """A few cold starts at the beginning of a lane are chance; a difference of more than half of the trials is not."""
    if first is None or second is None or abs(first - second) <= SYSTEMATIC_SHARE:
        return []
    return [Difference(name="trials started warm", first=f"{first:.0%}", second=f"{second:.0%}")]


def _version_differences(first: Versions, second: Versions) -> list[Difference]:
    return [
        Difference(name=name, first=first[name], second=second[name])
        for name in sorted(first.keys() & second.keys())
        if first[name] != second[name]
    ]


def _controls(first: Cell, second: Cell, changed: Sequence[str]) -> list[tuple[str, Cell]]:
    """The effect that each control would show alone, and the control."""
    if len(changed) == 1:
        same_batch = _with_global_batch_of(first.settings, second.settings)
        return [(changed[0], replace(second, settings=same_batch))] if same_batch else []
    return [(name, _restored(first, second, name)) for name in changed]


def _restored(first: Cell, second: Cell, name: str) -> Cell:
    """The first cell with the second's value of one setting: compared with the first, it shows this setting alone.

    What follows from the setting changes too: a strategy's options, and the batch that keeps the global batch.
    """
    if name.startswith("hyperparameters."):
        key = name.removeprefix("hyperparameters.")
        return replace(first, hyperparameters={**first.hyperparameters, key: second.hyperparameters[key]})
    names = [name, *options_of_strategies()] if name == "strategy" else [name]
    settings = replace(first.settings, **{each: getattr(second.settings, each) for each in names})
    if name in PLACEMENTS:
        settings = _with_global_batch_of(first.settings, settings) or settings
    return replace(first, settings=settings)


def _with_global_batch_of(wanted: Settings, settings: Settings) -> Settings | None:
    batch, own = planned_batch_size(wanted), planned_batch_size(settings)
    if batch is None or not own or batch == own:  # none if a degree needs more processes than exist
        return None
    size, rest = divmod(settings.batch_size_per_device * batch, own)
    return replace(settings, batch_size_per_device=size) if size and not rest else None


def _control(control: Cell, isolates: str, cells: Sequence[Cell], baseline: Cell) -> Control:
    existing = next(
        (
            cell.cell_id
            for cell in cells
            if (cell.settings, cell.hyperparameters) == (control.settings, control.hyperparameters)
        ),
        None,
    )
    document = settings_document(control.settings)
    changed = changed_fields(baseline, control)
    include = {
        name: control.hyperparameters.get(name.removeprefix("hyperparameters."))
        if name.startswith("hyperparameters.")
        else document.get(name)
        for name in changed
    }
    return Control(cell_id=existing, include=include, isolates=isolates)


def _difference(name: str, first: Cell, second: Cell) -> Difference:
    if name.startswith("hyperparameters."):
        key = name.removeprefix("hyperparameters.")
        return Difference(
            name=name, first=_text(first.hyperparameters.get(key)), second=_text(second.hyperparameters.get(key))
        )
    return Difference(
        name=name, first=_text(getattr(first.settings, name)), second=_text(getattr(second.settings, name))
    )


def _text(value: Any) -> str:
    if isinstance(value, LearningRate):
        scaled = f" at batch {value.reference_batch_size}" if value.scale_with is not LearningRateScaling.NONE else ""
        return f"{value.base:g}{scaled}"
    if isinstance(value, float):
        return f"{value:g}"
    return "default" if value is None else str(value)


def _known(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
