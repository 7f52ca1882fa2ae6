"""A setting is described once, beside its field: checks, schema, effects and batches follow from
there.
"""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from bench.suite_schema import TABLES, with_tables
from traindyno.core.documents.field_description import description_of
from traindyno.core.run.settings import (
    Effect,
    Settings,
    has_effect,
    options_of_strategies,
    settings_of_checkpoints,
    settings_with,
)
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import sections_of
from traindyno.features import FEATURES

DOCUMENTATION = Path(__file__).parents[4] / "docs/suite-file.md"


def test_the_documented_tables_are_current() -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    assert text.count("<!-- fields: ") == len(TABLES)
    assert with_tables(text, FEATURES) == text, "write them anew with: make schema"


def test_every_number_of_a_suite_is_bounded() -> None:
    kinds = (Suite, Settings, *sections_of(FEATURES))
    assert [name for kind in kinds for name in _unbounded_numbers(kind)] == []


def _unbounded_numbers(kind: Any) -> list[str]:
    """The fields of a dataclass and of those within it that hold a number and have no bound."""
    undecided = []
    hints = get_type_hints(kind)
    for field in fields(kind):
        parts = [hints[field.name], *getattr(hints[field.name], "__args__", ())]
        description = description_of(field)
        if any(
            part.__name__ in ("int", "float", "Decimal") for part in parts if isinstance(part, type)
        ):
            undecided += [f"{kind.__name__}.{field.name}"] * (
                description is None or description.bound is None
            )
        for part in parts:
            undecided += _unbounded_numbers(part) if is_dataclass(part) else []
    return undecided


def test_options_of_one_strategy_have_no_effect_with_others() -> None:
    tensor = Settings(instance="ml.p4d.24xlarge", strategy=Strategy.TENSOR, tensor_degree=4)
    assert has_effect("tensor_degree", tensor)
    assert not has_effect("pipeline_degree", tensor)
    assert has_effect("precision", tensor)
    assert options_of_strategies() == (
        "shard_scope",
        "replicate_degree",
        "shard_degree",
        "tensor_degree",
        "tensor_plan",
        "pipeline_degree",
        "pipeline_schedule",
        "micro_batches",
    )


def test_settings_are_listed_by_their_effect() -> None:
    assert settings_with(Effect.LEARNING) == (
        "optimizer",
        "lr_schedule",
        "lr_warmup_steps",
        "weight_decay",
        "gradient_clip_norm",
        "seed",
        "packing",
        "document_masking",
        "dropout",
        "adapter",
        "base_weights",
    )
    assert settings_with(Effect.PLACEMENT) == ("instance", "instance_count", "strategy")
    assert settings_with(Effect.BATCH) == (
        "batch_size_per_device",
        "gradient_accumulation_steps",
        "global_batch_size",
    )
    degrees = ("replicate_degree", "shard_degree", "tensor_degree", "pipeline_degree")
    assert settings_with(Effect.DEGREE) == degrees


def test_checkpoint_fixes_settings_of_losses_and_the_form_of_the_weights() -> None:
    fixed = {*settings_with(Effect.LEARNING), "strategy", "precision", "tensor_plan"}
    assert set(settings_of_checkpoints()) == fixed
