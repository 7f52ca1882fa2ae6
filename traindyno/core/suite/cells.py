"""The cells of a suite: its matrix expanded, each with a stable identity and a label that names
what varies.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cache
from itertools import product
from typing import Any, Protocol

from traindyno.core.documents.plain import id_of, plain_values
from traindyno.core.documents.stored import JsonValue
from traindyno.core.run.settings import (
    HYPERPARAMETER_PREFIX,
    BatchSearch,
    LearningRate,
    Settings,
    has_effect,
)
from traindyno.core.suite.choices import Compiler

SEPARATOR = " · "
LONGEST_LABEL = 160
COMPILER_WORDS = {Compiler.NONE: "eager", Compiler.INDUCTOR: "compiled", Compiler.XLA: "XLA"}
PLACE = ("instance", "instance_count")
CELL_ID_DIGITS = 8
# The settings of the first version. Their values are in every id, so this list never changes.
FIRST_SETTINGS = {
    "instance",
    "instance_count",
    "strategy",
    "compiler",
    "precision",
    "batch_size_per_device",
    "gradient_accumulation_steps",
    "optimizer",
    "learning_rate",
    "weight_decay",
    "gradient_clip_norm",
    "seed",
    "loader_workers",
    "pin_memory",
    "padding",
    "packing",
    "activation_checkpointing",
    "activation_offloading",
    "shard_scope",
    "tensor_degree",
    "pipeline_degree",
    "pipeline_schedule",
    "micro_batches",
    "dropout",
    "image",
}
Point = Mapping[str, Any]
Excluded = Mapping[tuple[str, ...], Set[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One configuration.

    ``cell_id`` is 8 hexadecimal digits of its content; ``label`` names what varies.
    """

    cell_id: str
    label: str
    settings: Settings
    hyperparameters: Mapping[str, JsonValue] = field(default_factory=dict)


class Grid(Protocol):
    """What a suite says of its cells."""

    @property
    def matrix(self) -> Mapping[str, tuple[Any, ...]]: ...
    @property
    def training(self) -> Mapping[str, Any]: ...
    @property
    def baseline(self) -> Mapping[str, Any]: ...
    @property
    def include(self) -> tuple[Mapping[str, Any], ...]: ...
    @property
    def exclude(self) -> tuple[Mapping[str, Any], ...]: ...


def _text(value: Any) -> str:
    match value:
        case None:
            return "default"
        case bool():
            return "on" if value else "off"
        case Enum():
            return str(value.value)
        case LearningRate():
            scaled = (
                "" if value.reference_batch_size is None else f" at {value.reference_batch_size}"
            )
            return f"{value.base:g}{scaled}"
        case tuple() | Mapping():
            return json.dumps(value)
        case _:
            return str(value)


WORDS: Mapping[str, Callable[[Any], str]] = {
    "adapter": lambda value: "all weights" if value is None else str(value),
    "strategy": _text,
    "compiler": lambda value: COMPILER_WORDS.get(value, _text(value)),
    "precision": _text,
    "optimizer": _text,
    "base_weights": lambda value: f"base in {value}",
    "batch_size_per_device": lambda value: (
        f"{value.search} batch" if isinstance(value, BatchSearch) else f"batch {value}"
    ),
    "gradient_accumulation_steps": lambda value: f"{value} accumulation steps",
    "global_batch_size": lambda value: f"global batch {_text(value)}",
    "gradient_clip_norm": lambda value: "no clipping" if value is None else f"clip norm {value:g}",
    "loader_workers": lambda value: f"{value} loader worker{'' if value == 1 else 's'}",
    "padding": lambda value: f"padded to {_text(value).replace('-', ' ')}",
    "packing": lambda value: "packed" if value else "not packed",
    "document_masking": lambda value: "document masking" if value else "no document masking",
    "activation_checkpointing": lambda value: "checkpointing" if value else "no checkpointing",
    "activation_offloading": lambda value: "offloading" if value else "no offloading",
    "loss_chunks": lambda value: "whole loss" if value is None else f"loss in chunks of {value}",
    "pin_memory": lambda value: "pinned memory" if value else "pageable memory",
}


def label_cells(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Give the cells distinct labels that name all that varies.

    If that is too long to read, a label names what tells its cell apart.
    """
    varying = [
        setting.name
        for setting in fields(Settings)
        if len({getattr(cell.settings, setting.name) for cell in cells}) > 1
    ]
    given = sorted({name for cell in cells for name in cell.hyperparameters})
    varying_given = [
        name for name in given if len({cell.hyperparameters.get(name) for cell in cells}) > 1
    ]
    words = [
        _argument_words(name, [cell.hyperparameters.get(name) for cell in cells])
        for name in varying_given
    ]
    parts_of = []
    for index, settings in enumerate(cell.settings for cell in cells):
        # A number of instances is shown with its instance type.
        place = (
            f"{settings.instance_count} × {settings.instance}"
            if "instance_count" in varying
            else settings.instance
        )
        parts = [*([place] if {*PLACE} & {*varying} else ()), *_settings(settings, varying)]
        parts += [word for words_of_argument in words for word in words_of_argument[index]]
        parts_of.append(list(dict.fromkeys(parts)) or [settings.instance])
    labels = list(map(SEPARATOR.join, parts_of))
    if max(map(len, labels), default=0) > LONGEST_LABEL:
        labels = [_what_tells_apart(index, parts_of) for index in range(len(cells))]
    return tuple(replace(cell, label=label) for cell, label in zip(cells, labels, strict=True))


def _what_tells_apart(index: int, parts_of: Sequence[Sequence[str]]) -> str:
    """The first part, and as few further ones as leave no other cell with all of them."""
    own = parts_of[index]
    kept = {own[0]}
    others = [parts for number, parts in enumerate(parts_of) if number != index and own[0] in parts]
    while others:
        best = max(own, key=lambda part: sum(part not in parts for parts in others))
        left = [parts for parts in others if best in parts]
        if len(left) == len(others):
            break
        kept = kept | {best}
        others = left
    return SEPARATOR.join(part for part in own if part in kept)


def _argument_words(name: str, values: Sequence[JsonValue]) -> list[list[str]]:
    """Words for the values of an argument: its name with each value.

    For mappings that are written as JSON, each key that differs between them, with its value.
    """
    try:
        mappings = [json.loads(str(value)) for value in values]
    except ValueError:
        mappings = []
    if not mappings or not all(isinstance(value, dict) for value in mappings):
        return [[f"{name} {_text(value)}"] for value in values]
    names = dict.fromkeys(name for mapping in mappings for name in mapping)
    varying = [name for name in names if len({repr(mapping.get(name)) for mapping in mappings}) > 1]
    return [[f"{name} {_text(mapping.get(name))}" for name in varying] for mapping in mappings]


def _settings(settings: Settings, varying: Sequence[str]) -> Iterator[str]:
    plain = Settings(instance=settings.instance)
    for name in varying:
        value = getattr(settings, name)
        if name not in PLACE and (has_effect(name, settings) or value != getattr(plain, name)):
            yield (
                WORDS[name](value) if name in WORDS else f"{name.replace('_', ' ')} {_text(value)}"
            )


def expand_cells(grid: Grid) -> tuple[Cell, ...]:
    """The grid without the excluded points, then the included ones, which are the baseline with
    changes; the baseline is never excluded.
    """
    baseline = baseline_point(grid)
    points = [*kept_points(grid, baseline)]
    points += [{**baseline, **changes} for changes in grid.include]
    return label_cells(
        list({cell.cell_id: cell for cell in (make_cell(grid, point) for point in points)}.values())
    )


def grid_points(grid: Grid) -> Iterator[dict[str, Any]]:
    for values in product(*grid.matrix.values()):
        yield dict(zip(grid.matrix, values, strict=True))


def kept_points(grid: Grid, baseline: Point | None = None) -> Iterator[dict[str, Any]]:
    """The points of the grid that are not excluded, and ``baseline`` in any case."""
    # Axes of ``exclude`` entries → the combinations of values that these entries exclude.
    excluded: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
    for point in grid.exclude:
        excluded.setdefault(tuple(point), set()).add(tuple(map(typed, point.values())))
    for point in grid_points(grid):
        if point == baseline or not _is_excluded(point, excluded):
            yield point


def baseline_point(grid: Grid) -> dict[str, Any]:
    """The first point of the grid that agrees with ``baseline``; without one, the first that is not
    excluded.
    """
    first = {name: values[0] for name, values in grid.matrix.items()}
    return {**first, **grid.baseline} if grid.baseline else next(kept_points(grid), first)


def is_in_grid(grid: Grid, wanted: Point) -> bool:
    """Whether the matrix holds a point with these values."""
    return all(
        typed(value) in map(typed, grid.matrix.get(name, ())) for name, value in wanted.items()
    )


def typed(value: Any) -> tuple[type, Any]:
    """The value with its type, for comparisons: in Python, 1 and true are equal."""
    return type(value), value


def _is_excluded(point: Point, excluded: Excluded) -> bool:
    return any(
        set(names) <= point.keys() and tuple(typed(point[name]) for name in names) in values
        for names, values in excluded.items()
    )


def make_cell(grid: Grid, point: Point) -> Cell:
    """The cell of one point, with its id as the label."""
    chosen = {**grid.training, **point}
    hyperparameters = {
        name.removeprefix(HYPERPARAMETER_PREFIX): value
        for name, value in chosen.items()
        if name.startswith(HYPERPARAMETER_PREFIX)
    }
    settings = Settings(
        **{
            name: value
            for name, value in chosen.items()
            if not name.startswith(HYPERPARAMETER_PREFIX)
        }
    )
    cell_id = identify(settings, hyperparameters)
    return Cell(cell_id=cell_id, label=cell_id, settings=settings, hyperparameters=hyperparameters)


def identify(settings: Settings, hyperparameters: Mapping[str, Any]) -> str:
    """The cell's id: 8 hexadecimal digits of its settings and hyperparameters.

    A setting that was added later counts only if it differs from its default, so that earlier ids
    stay the same.
    """
    settings_type: Any = type(settings)  # mypy holds the type of a dataclass to be unhashable
    document = plain_values(settings)
    defaults = _default_values(settings_type)
    counted = {
        name: value
        for name, value in document.items()
        if name in FIRST_SETTINGS or value != defaults.get(name)
    }
    content = {"settings": counted, "hyperparameters": dict(hyperparameters)}
    return id_of(content, CELL_ID_DIGITS)


@cache
def _default_values(settings_type: type[Settings]) -> Mapping[str, Any]:
    defaults: Mapping[str, Any] = plain_values(settings_type(instance=""))
    return defaults
