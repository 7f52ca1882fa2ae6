"""What a verdict says of the global batch of a user's script: what its step log measured, or
nothing.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.unit.run_samples import completed_result, known
from traindyno.api.suite_loading import load_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.processes import world_size
from traindyno.core.suite.arguments import arguments_of
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cautions import describe_cautions
from traindyno.core.verdict.conditions import Confound
from traindyno.core.verdict.confounds import find_confound, learning_key
from traindyno.core.verdict.judge import gather_evidence, judge
from traindyno.core.verdict.verdict import Verdict

SUITES = Path(__file__).parents[4] / "suites"
BATCHES = ("per_device_train_batch_size", "batch_size")
MOST_PAIRS = 60
STEPS = {"hyperparameters.max_steps", "hyperparameters.max_train_steps"}


def samples_per_step(suite: Suite, cells: Sequence[Cell]) -> dict[str, int]:
    """What the step logs of a script measure: the batch of each process × the processes."""
    by_cell = {}
    for cell in cells:
        arguments = arguments_of(cell, suite.workload)
        processes = world_size(cell.settings)
        size = next((arguments[name] for name in BATCHES if name in arguments), None)
        if suite.workload.task is Task.SCRIPT and size is not None and processes:
            by_cell[cell.cell_id] = int(str(size)) * processes
    return by_cell


def script_suite(**changes: Any) -> Suite:
    document = {
        "name": "script",
        "goal": "fastest",
        "workload": {
            "task": "script",
            "source": "s3://bucket/code/abababababababababababababababababababababababababababababababab/sourcedir.tar.gz",
            "entry_point": "train.py",
            "examples": 1000,
            "hyperparameters": {"epochs": 1},
        },
        "training": {"instance": "local.cpu"},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 120},
        **changes,
    }
    return parse_suite(document)


def measured_in(suite: Suite, *samples: int) -> dict[str, int]:
    return {cell.cell_id: size for cell, size in zip(suite.cells, samples, strict=True)}


def only_confound(suite: Suite, measured: Mapping[str, int]) -> Confound:
    first, second = suite.cells
    return known(find_confound(first, second, workload=suite.workload, samples_per_step=measured))


def results_of(suite: Suite) -> list[RunResult]:
    """Two trials of each cell, later cells faster, whose logs have the samples that the script
    trains on.
    """
    return [
        completed_result(
            cell,
            trial,
            step_seconds=(1.0 - index / 10) * (1 + trial / 1000) * batch / 256,
            samples=batch,
            suite=suite,
        )
        for index, cell in enumerate(suite.cells)
        for batch in [all_measured(suite)[cell.cell_id]]
        for trial in (1, 2)
    ]


def suite_of(name: str) -> Suite:
    return load_suite(SUITES / f"{name}.yaml").suite


def verdict_of(suite: Suite, results: Sequence[RunResult]) -> Verdict:
    return judge(suite, suite.cells, results)


def differences(
    first: Cell, second: Cell, suite: Suite, measured: dict[str, int]
) -> list[tuple[str, str, str]]:
    confound = find_confound(first, second, workload=suite.workload, samples_per_step=measured)
    return (
        [
            (difference.name, difference.first, difference.second)
            for difference in confound.differences
        ]
        if confound
        else []
    )


def all_measured(suite: Suite) -> dict[str, int]:
    return samples_per_step(suite, suite.cells)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("hf_trainer", 0, 2),
        ("lightning", 0, 2),
        ("bert-trainium/rehearsal", 0, 1),
        ("bert-trainium/original", 1, 2),
    ],
)
def test_equal_measured_batches_are_no_difference_however_they_are_divided(
    name: str, first: int, second: int
) -> None:
    """16 x 1 and 8 x 2; 32 x 1 and 16 x 2; P4d's batch of 32 x 8 GPUs and Trainium's 8 x 32
    devices: both 256.
    """
    suite = suite_of(name)
    cells = suite.cells
    if name == "bert-trainium/original":
        # the post's P4d cell with batch 8 trains on 64 samples a step, the added one with 32 on 256
        assert [*all_measured(suite).values()] == [64, 256, 256]
    batches = all_measured(suite)
    assert batches[cells[first].cell_id] == batches[cells[second].cell_id]
    named = [
        name_of_difference
        for name_of_difference, _, _ in differences(cells[first], cells[second], suite, batches)
    ]
    assert named
    assert not [name_of_difference for name_of_difference in named if "batch" in name_of_difference]


def test_the_report_of_trainium_names_the_hardware_and_its_software() -> None:
    for name in ("rehearsal", "original"):
        suite = suite_of(f"bert-trainium/{name}")
        verdict = verdict_of(suite, results_of(suite))
        text = " ".join(describe_cautions(verdict))
        assert "differ in instance, compiler and image." in text
        assert "global batch (8 against 32)" not in text


@pytest.mark.parametrize("name", ["hf_trainer", "lightning", "own_script"])
def test_report_of_a_script_states_no_learning_rate_and_no_unmeasured_batch(name: str) -> None:
    suite = suite_of(name)
    verdict = verdict_of(suite, results_of(suite))
    stated_differences = [
        difference for confound in verdict.likeness.confounds for difference in confound.differences
    ]
    assert "learning rate" not in [difference.name for difference in stated_differences]
    stated = {
        text
        for difference in stated_differences
        if difference.name == "global batch"
        for text in (difference.first, difference.second)
    }
    assert stated <= {str(batch) for batch in all_measured(suite).values()}


def test_a_larger_measured_batch_on_more_processes_is_named() -> None:
    suite = suite_of("hf_trainer")
    single, large, two = suite.cells
    # 32 x 1 against 8 x 2: 16 processes' samples
    assert ("global batch", "32", "16") in differences(large, two, suite, all_measured(suite))
    # the argument itself is the only change
    assert differences(single, large, suite, all_measured(suite)) == []


def test_a_value_common_to_all_cells_is_no_difference() -> None:
    suite = suite_of("hf_trainer")
    single, large, _ = suite.cells
    same = replace(large, hyperparameters={**single.hyperparameters, "max_steps": 40})
    assert differences(single, same, suite, {}) == []


def test_samples_of_a_step_are_the_measured_ones_and_unknown_if_trials_differ() -> None:
    suite = suite_of("hf_trainer")
    cells = suite.cells
    results = results_of(suite)
    assert gather_evidence(suite, cells, results).samples_per_step == all_measured(suite)
    other = completed_result(cells[0], 3, samples=17, suite=suite)
    assert cells[0].cell_id not in gather_evidence(suite, cells, [*results, other]).samples_per_step


def test_scripts_learn_alike_only_with_equal_arguments_and_measured_batches() -> None:
    suite = suite_of("hf_trainer")
    cell = suite.cells[2]
    more = replace(cell, settings=replace(cell.settings, instance_count=4))
    keys = {learning_key(cell_of_key, suite.workload, 16) for cell_of_key in (cell, more)}
    assert len(keys) == 1
    assert learning_key(more, suite.workload, 32) not in keys
    assert (
        len({learning_key(cell_of_key, suite.workload, None) for cell_of_key in (cell, more)}) == 2
    )


def test_a_scripts_measured_batch_beside_more_instances_is_named() -> None:
    suite = script_suite(
        matrix={"instance_count": [1, 2], "strategy": ["ddp"], "hyperparameters.batch_size": ["32"]}
    )
    confound = only_confound(suite, measured_in(suite, 32, 64))
    assert [
        (difference.name, difference.first, difference.second)
        for difference in confound.differences
    ] == [
        ("instance_count", "1", "2"),
        ("global batch", "32", "64"),
    ]


@pytest.mark.parametrize("name", ["albert-scaling/rehearsal", "bert-trainium/original"])
def test_steps_following_the_batch_are_no_difference_of_their_own(name: str) -> None:
    suite = suite_of(name)
    pairs = list(permutations(suite.cells, 2))
    for first, second in random.Random(1).sample(pairs, min(MOST_PAIRS, len(pairs))):
        named = differences(first, second, suite, all_measured(suite))
        assert not {name_of_difference for name_of_difference, _, _ in named} & STEPS


def test_workers_falling_as_the_batch_grows_do_not_follow_it() -> None:
    suite = script_suite(
        matrix={
            "strategy": ["ddp"],
            "hyperparameters.batch_size": [16],
            "hyperparameters.workers": [8],
        },
        include=[{"hyperparameters.batch_size": 32, "hyperparameters.workers": 4}],
    )
    confound = only_confound(suite, measured_in(suite, 16, 32))
    assert "hyperparameters.workers" in [difference.name for difference in confound.differences]


def test_an_argument_missing_in_one_cell_is_named() -> None:
    suite = script_suite(
        matrix={
            "strategy": ["ddp"],
            "hyperparameters.batch_size": [32],
            "hyperparameters.stream": ["yes"],
        },
        include=[
            {"strategy": "single", "hyperparameters.cache": 1, "hyperparameters.batch_size": 8}
        ],
    )
    first, second = suite.cells
    other = replace(second, hyperparameters={"batch_size": 8, "cache": 1})
    assert ("hyperparameters.stream", "yes", "default") in differences(first, other, suite, {})


def test_an_image_is_named_beside_its_compiler() -> None:
    suite = script_suite(
        training={"instance": "ml.g4dn.12xlarge"},
        matrix={
            "compiler": ["none"],
            "image": ["pytorch-training:1.11-gpu-py38"],
            "hyperparameters.batch_size": [10],
        },
        include=[
            {
                "compiler": "xla",
                "image": "huggingface-pytorch-trcomp-training:"
                "1.11-transformers4.21-gpu-py38-cu113-ubuntu20.04",
                "hyperparameters.batch_size": 20,
            }
        ],
    )
    confound = only_confound(suite, measured_in(suite, 40, 80))
    assert [difference.name for difference in confound.differences] == [
        "compiler",
        "image",
        "hyperparameters.batch_size",
        "global batch",
    ]
