"""The words of a label, setting by setting."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import make_cell
from traindyno.api.suite_loading import load_suite
from traindyno.core.run.settings import LearningRate
from traindyno.core.suite.cells import label_cells
from traindyno.core.suite.choices import LearningRateScaling, Strategy

SUITES = Path(__file__).parents[4] / "suites"


def labels(*settings: dict[str, Any]) -> list[str]:
    return [
        cell.label
        for cell in label_cells(
            [make_cell(f"{index:08x}", **setting) for index, setting in enumerate(settings)]
        )
    ]


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("gradient_clip_norm", (None, 0.5), ["no clipping", "clip norm 0.5"]),
        ("activation_checkpointing", (True, False), ["checkpointing", "no checkpointing"]),
        ("activation_offloading", (True, False), ["offloading", "no offloading"]),
        ("packing", (True, False), ["packed", "not packed"]),
        ("loader_workers", (0, 1), ["0 loader workers", "1 loader worker"]),
        ("gradient_accumulation_steps", (1, 4), ["1 accumulation steps", "4 accumulation steps"]),
        ("seed", (1, 2), ["seed 1", "seed 2"]),
    ],
)
def test_a_value_is_named_in_words(name: str, values: tuple[Any, Any], words: list[str]) -> None:
    assert labels(*({name: value} for value in values)) == words


def test_a_learning_rate_names_its_batch() -> None:
    plain = LearningRate(base=0.001)
    scaled = LearningRate(
        base=5e-5, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH
    )
    assert labels({"learning_rate": plain}, {"learning_rate": scaled}) == [
        "learning rate 0.001",
        "learning rate 5e-05 at 32",
    ]


def test_a_setting_without_effect_is_named_only_beyond_its_default() -> None:
    texts = labels(
        {"strategy": Strategy.DDP},
        {"strategy": Strategy.TENSOR, "tensor_degree": 2},
        {"strategy": Strategy.TENSOR, "tensor_degree": None},
    )
    assert texts == ["ddp", "tensor · tensor degree 2", "tensor · tensor degree default"]


def test_varying_hyperparameters_are_named() -> None:
    given: list[dict[str, int | bool]] = [
        {"lr": 1, "bf16": True},
        {"lr": 2, "bf16": True},
        {"bf16": True},
    ]
    cells = [
        replace(make_cell(f"{index:08x}"), hyperparameters=hyperparameters)
        for index, hyperparameters in enumerate(given)
    ]
    assert [cell.label for cell in label_cells(cells)] == ["lr 1", "lr 2", "lr default"]


def test_the_label_has_the_differences_of_json_arguments() -> None:
    given = [
        '{"ddp": true, "tensor": 8, "fp16": true}',
        '{"ddp": true, "tensor": 4}',
        '{"ddp": true}',
    ]
    cells = [
        replace(make_cell(f"{n:08x}"), hyperparameters={"mp_parameters": hyperparameters})
        for n, hyperparameters in enumerate(given)
    ]
    told = [cell.label for cell in label_cells(cells)]
    assert told == [
        "tensor 8 · fp16 on",
        "tensor 4 · fp16 default",
        "tensor default · fp16 default",
    ]


def test_overlong_labels_have_the_differences_of_each_cell(snapshot: Snapshot) -> None:
    packs = [
        load_suite(SUITES / f"gptj-parallel/{name}.yaml").suite.cells
        for name in ("original", "rehearsal")
    ]
    texts = [[cell.label for cell in cells] for cells in packs]
    snapshot(texts[0][0])
    assert texts[0][2] == "tensor · shard_optimizer_state off"
    assert texts[1] == ["tensor", "pipeline"]
    for labels_of_pack in texts:
        assert len({*labels_of_pack}) == len(labels_of_pack)
        assert max(map(len, labels_of_pack)) < 90


def test_a_type_alone_is_named_without_its_count() -> None:
    assert labels({"instance": "ml.g5.xlarge"}, {"instance": "local.cpu"}) == [
        "ml.g5.xlarge",
        "local.cpu",
    ]
    assert labels({"instance_count": 1}, {"instance_count": 2}) == [
        "1 × ml.p4d.24xlarge",
        "2 × ml.p4d.24xlarge",
    ]
