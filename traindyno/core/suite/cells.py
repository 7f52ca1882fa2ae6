"""The cells of a suite: its matrix expanded, each with a stable identity and a label that names what varies."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from itertools import product
from typing import Any

from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX, LearningRate, Settings, has_effect
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.suite.suite_converter import suite_converter

CELL_ID_DIGITS = 8
NAMED_BY_VALUE = {"instance", "strategy"}

# The settings of the first version. Their values are in every id, so this list never changes.
FIRST_SETTINGS = {
    "instance", "instance_count", "strategy", "compiler", "precision", "batch_size_per_device",
    "gradient_accumulation_steps", "optimizer", "learning_rate", "weight_decay", "gradient_clip_norm", "seed",
    "loader_workers", "prefetch_factor", "pin_memory", "padding", "packing", "activation_checkpointing",
    "activation_offloading", "shard_scope", "tensor_degree", "pipeline_degree", "pipeline_schedule", "micro_batches",
    "dropout", "image",
}  # fmt: skip

Point = Mapping[str, Any]


def expand_cells(suite: Suite) -> tuple[Cell, ...]:
    """The grid less what is excluded, then what is included; the baseline is never excluded."""
    baseline = baseline_point(suite)
    points = [point for point in grid_points(suite) if point == baseline or not _is_excluded(point, suite)]
    points += [included_point(suite, entry) for entry in suite.include]
    return _label(list({cell.cell_id: cell for cell in (_cell(suite, point) for point in points)}.values()))


def baseline_cell(suite: Suite) -> Cell:
    """The cell that the others are compared with, labelled as ``expand_cells`` does."""
    wanted = _cell(suite, baseline_point(suite)).cell_id
    return next(cell for cell in expand_cells(suite) if cell.cell_id == wanted)


def grid_points(suite: Suite) -> Iterator[dict[str, Any]]:
    for values in product(*suite.matrix.values()):
        yield dict(zip(suite.matrix, values, strict=True))


def baseline_point(suite: Suite) -> dict[str, Any]:
    """The first point of the grid that agrees with ``baseline``."""
    return next(point for point in grid_points(suite) if agrees(point, suite.baseline))


def included_point(suite: Suite, entry: Point) -> dict[str, Any]:
    """An ``include`` entry is the baseline with these changes."""
    return {**baseline_point(suite), **entry}


def agrees(point: Point, wanted: Point) -> bool:
    return all(name in point and is_same(point[name], value) for name, value in wanted.items())


def is_same(one: Any, other: Any) -> bool:
    """Equal and of one type: to Python, 1 and true are equal."""
    return type(one) is type(other) and bool(one == other)


def make_cell(suite: Suite, point: Point) -> Cell:
    """The cell of one point, labelled by its identity alone."""
    return _cell(suite, point)


def _is_excluded(point: Point, suite: Suite) -> bool:
    return any(agrees(point, entry) for entry in suite.exclude)


def _cell(suite: Suite, point: Point) -> Cell:
    chosen = {**suite.training, **point}
    hyperparameters = {
        name.removeprefix(HYPERPARAMETER_PREFIX): value
        for name, value in chosen.items()
        if name.startswith(HYPERPARAMETER_PREFIX)
    }
    settings = Settings(**{name: value for name, value in chosen.items() if not name.startswith(HYPERPARAMETER_PREFIX)})
    cell_id = identify(settings, hyperparameters)
    return Cell(cell_id=cell_id, label=cell_id, settings=settings, hyperparameters=hyperparameters)


def identify(settings: Settings, hyperparameters: Mapping[str, Any]) -> str:
    """The cell's id: 8 hexadecimal digits of its settings and hyperparameters.

    A setting that was added later counts only where it differs from its default, so that it changes no earlier id.
    """
    document = suite_converter().unstructure(settings)
    plain = suite_converter().unstructure(type(settings)(instance=settings.instance))
    counted = {name: value for name, value in document.items() if name in FIRST_SETTINGS or value != plain.get(name)}
    content = {"settings": counted, "hyperparameters": dict(hyperparameters)}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:CELL_ID_DIGITS]


def _label(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    named = [
        field.name for field in fields(Settings) if len({getattr(cell.settings, field.name) for cell in cells}) > 1
    ]
    given = sorted({name for cell in cells for name in cell.hyperparameters})
    named_given = [name for name in given if len({cell.hyperparameters.get(name) for cell in cells}) > 1]
    return tuple(
        Cell(
            cell_id=cell.cell_id,
            label=_label_of(cell, named, named_given),
            settings=cell.settings,
            hyperparameters=cell.hyperparameters,
        )
        for cell in cells
    )


def _label_of(cell: Cell, names: Sequence[str], hyperparameters: Sequence[str]) -> str:
    plain = Settings(instance=cell.settings.instance)
    parts = [
        _text(value) if name in NAMED_BY_VALUE else f"{name}={_text(value)}"
        for name, value in ((name, getattr(cell.settings, name)) for name in names)
        if has_effect(name, cell.settings) or value != getattr(plain, name)
    ]
    parts += [f"{name}={_text(cell.hyperparameters.get(name))}" for name in hyperparameters]
    return ", ".join(parts) or cell.settings.instance


def _text(value: Any) -> str:
    match value:
        case None:
            return "default"
        case bool():
            return "on" if value else "off"
        case Enum():
            return str(value.value)
        case LearningRate():
            scaled = "" if value.reference_batch_size is None else f" at {value.reference_batch_size}"
            return f"{value.base:g}{scaled}"
        case _:
            return str(value)
