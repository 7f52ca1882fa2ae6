"""The short labels of cells, with only the settings that vary, such as ``2 × local.cpu · compiled · batch 4``."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from traindyno.core.suite.choices import Compiler
from traindyno.core.suite.settings import BatchSearch, LearningRate, Settings, has_effect
from traindyno.core.suite.suite import Cell

SEPARATOR = " · "
COMPILER_WORDS = {Compiler.NONE: "eager", Compiler.INDUCTOR: "compiled", Compiler.XLA: "XLA"}


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
        case tuple() | Mapping():
            return json.dumps(value)
        case _:
            return str(value)


WORDS: Mapping[str, Callable[[Any], str]] = {
    "strategy": _text,
    "compiler": lambda value: COMPILER_WORDS.get(value, _text(value)),
    "precision": _text,
    "optimizer": _text,
    "batch_size_per_device": lambda value: (
        f"{value.search} batch" if isinstance(value, BatchSearch) else f"batch {value}"
    ),
    "gradient_accumulation_steps": lambda value: f"{value} accumulation steps",
    "global_batch_size": lambda value: f"global batch {_text(value)}",
    "learning_rate": lambda value: f"learning rate {_text(value)}",
    "gradient_clip_norm": lambda value: "no clipping" if value is None else f"clip norm {value:g}",
    "loader_workers": lambda value: f"{value} loader worker{'' if value == 1 else 's'}",
    "padding": lambda value: f"padded to {_text(value).replace('-', ' ')}",
    "packing": lambda value: "packed" if value else "not packed",
    "document_masking": lambda value: "document masking" if value else "no document masking",
    "activation_checkpointing": lambda value: "checkpointing" if value else "no checkpointing",
    "activation_offloading": lambda value: "offloading" if value else "no offloading",
    "pin_memory": lambda value: "pinned memory" if value else "pageable memory",
    "replicate_degree": lambda value: f"replicate degree {_text(value)}",
    "shard_degree": lambda value: f"shard degree {_text(value)}",
    "tensor_degree": lambda value: f"tensor degree {_text(value)}",
    "tensor_plan": lambda value: f"tensor plan {_text(value)}",
    "pipeline_degree": lambda value: f"pipeline degree {_text(value)}",
}
PLACE = ("instance", "instance_count")


def label_cells(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells with distinct labels."""
    varying = [each.name for each in fields(Settings) if len({getattr(cell.settings, each.name) for cell in cells}) > 1]
    given = sorted({name for cell in cells for name in cell.hyperparameters})
    varying_given = [name for name in given if len({cell.hyperparameters.get(name) for cell in cells}) > 1]
    return tuple(replace(cell, label=_label(cell, varying, varying_given)) for cell in cells)


def _label(cell: Cell, varying: Sequence[str], hyperparameters: Sequence[str]) -> str:
    parts = [*_place(cell.settings, varying), *_settings(cell.settings, varying)]
    parts += [f"{name} {_text(cell.hyperparameters.get(name))}" for name in hyperparameters]
    return SEPARATOR.join(parts) or cell.settings.instance


def _place(settings: Settings, varying: Sequence[str]) -> Iterator[str]:
    """A number of instances is shown with its instance type."""
    if "instance_count" in varying:
        yield f"{settings.instance_count} × {settings.instance}"
    elif "instance" in varying:
        yield settings.instance


def _settings(settings: Settings, varying: Sequence[str]) -> Iterator[str]:
    plain = Settings(instance=settings.instance)
    for name in varying:
        value = getattr(settings, name)
        if name not in PLACE and (has_effect(name, settings) or value != getattr(plain, name)):
            yield WORDS[name](value) if name in WORDS else f"{name.replace('_', ' ')} {_text(value)}"
