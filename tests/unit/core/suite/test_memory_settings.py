"""The settings that decide a job's memory travel to it in parts, each of which fits a hyperparameter."""

import json
from dataclasses import replace
from typing import Any

from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.memory_settings import (
    PART_CHARACTERS,
    memory_parts,
    memory_settings,
    parse_memory_parts,
    settings_digest,
)
from traindyno.core.suite.settings import LearningRate, Settings, setting_descriptions

PLAIN = Settings(instance="ml.p4d.24xlarge")
MANY = [replace(PLAIN, batch_size_per_device=size, strategy=Strategy.FSDP) for size in range(1, 400)]


def test_parts_are_as_large_as_a_hyperparameter_takes_and_read_back_in_order() -> None:
    parts = memory_parts(MANY)
    assert list(parts) == [f"memory_{number}" for number in range(len(parts))]
    assert len(parts) > 10
    sizes = [len(json.dumps(part)) for part in parts.values()]
    assert max(sizes) <= PART_CHARACTERS
    # one more would not have fitted into any but the last
    first = [json.dumps(part[0]) for part in parts.values()]
    assert all(
        size + len(", ") + len(following) > PART_CHARACTERS for size, following in zip(sizes, first[1:], strict=False)
    )
    assert list(parse_memory_parts({**parts, "epochs": 1})) == MANY


def test_no_settings_make_no_parts() -> None:
    assert memory_parts([]) == {}
    assert list(parse_memory_parts({"epochs": 1})) == []


def test_what_changes_no_tensors_size_stands_beside_each_field() -> None:
    given: dict[str, Any] = {
        "learning_rate": LearningRate(base=0.1),
        "weight_decay": 0.5,
        "seed": 9,
        "loader_workers": 7,
        "pin_memory": True,
        "image": "mine",
    }
    assert memory_settings(replace(PLAIN, **given)) == PLAIN
    unlike = [name for name, description in setting_descriptions().items() if not description.changes_memory]
    assert unlike == list(given)


def test_only_what_changes_the_memory_is_kept_and_written() -> None:
    varied = replace(PLAIN, seed=9, loader_workers=7, batch_size_per_device=2)
    assert memory_settings(varied) == replace(PLAIN, batch_size_per_device=2)
    assert memory_parts([memory_settings(varied)])["memory_0"] == [
        {"instance": "ml.p4d.24xlarge", "batch_size_per_device": 2}
    ]
    digests = {settings_digest([each]) for each in (PLAIN, varied, memory_settings(varied))}
    assert len(digests) == 3
    assert all(len(digest) == 64 for digest in digests)
