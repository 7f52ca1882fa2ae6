"""Each control cell that a report proposes is one that planning accepts, for the cells of all
shipped suites.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.unit.run_samples import known
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import STAGED_SOURCE
from traindyno.api.suite_loading import load_suite
from traindyno.core.instances.devices import AcceleratorKind
from traindyno.core.instances.instance_types import (
    find_instance_type,
)
from traindyno.core.suite.arguments import arguments_of
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Compiler, Task
from traindyno.core.suite.processes import world_size
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import suite_document
from traindyno.core.verdict.confounds import Confound, find_confound
from traindyno.core.verdict.control_cells import Control
from traindyno.sagemaker.images import find_conflicts
from traindyno.sagemaker.request import build_training_job_request

SUITES = Path(__file__).parents[4] / "suites"
SHIPPED = sorted(path for path in SUITES.rglob("*.yaml") if path.name != "claims.yaml")
BATCHES = ("per_device_train_batch_size", "batch_size")
# The lab has images of its own for GPUs, and none for Trainium.
LAB = replace(SETTINGS, images={"gpu": "1.dkr.ecr.us-east-1.amazonaws.com/efa:1"})

MOST_PAIRS = 60
STEPS = "hyperparameters.max_steps"


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def samples_per_step(suite: Suite, cells: Sequence[Cell]) -> dict[str, int]:
    """What the step logs of a script measure: the batch of each process × the processes."""
    found = {}
    for cell in cells:
        arguments, processes = arguments_of(cell, suite.workload), world_size(cell.settings)
        size = next((arguments[name] for name in BATCHES if name in arguments), None)
        if suite.workload.task is Task.SCRIPT and size is not None and processes:
            found[cell.cell_id] = int(str(size)) * processes
    return found


def confounds_of(
    suite: Suite, cells: Sequence[Cell], measured: Mapping[str, int]
) -> Iterator[Confound]:
    pairs = list(permutations(cells, 2))
    for first, second in random.Random(1).sample(pairs, min(MOST_PAIRS, len(pairs))):
        found = find_confound(first, second, suite=suite, cells=cells, samples_per_step=measured)
        if found is not None:
            yield found


def proposed(suite: Suite, cells: Sequence[Cell]) -> list[Control]:
    """The proposed controls, each once, with what the logs of a script measure and without."""
    measured = samples_per_step(suite, cells)
    confounds = [
        each
        for known in ([measured, {}] if measured else [{}])
        for each in confounds_of(suite, cells, known)
    ]
    controls = (control for confound in confounds for control in confound.controls)
    found = {
        json.dumps(control.include, sort_keys=True): control
        for control in controls
        if control.cell_id is None
    }
    return list(found.values())


@pytest.mark.parametrize("path", SHIPPED, ids=named)
def test_planning_accepts_each_proposed_control(path: Path) -> None:
    """The suite as a user would write it, with all of them: parse_suite raises SuiteInvalid if
    planning refuses one.
    """
    suite = load_suite(path, local=path.parent == SUITES).suite
    cells, document = suite.cells, suite_document(suite)
    controls = proposed(suite, cells)
    changed = parse_suite(
        {**document, "include": [*document["include"], *(dict(each.include) for each in controls)]}
    )
    known = {cell.cell_id for cell in cells}
    new = [cell for cell in changed.cells if cell.cell_id not in known]
    assert len(new) == len(controls)
    assert {*find_conflicts(changed, LAB)} <= {*find_conflicts(suite, LAB)}
    staged = STAGED_SOURCE if suite.workload.source else None
    staged_suite = replace(changed, workload=replace(changed.workload, source=staged))
    for run in trial_runs("execution-1", new, [1]):
        build_training_job_request(run, staged_suite, attempt=1, settings=SETTINGS)
        assert mismatches(run.cell, suite) == []


def mismatches(cell: Cell, suite: Suite) -> list[str]:
    """What AWS's image of the cell can't do, by its name."""
    image = cell.settings.image or suite.workload.image or ""
    kind = find_instance_type(cell.settings.instance)
    is_neuron = kind is not None and kind.accelerator_kind is AcceleratorKind.NEURON
    found = []
    if image and is_neuron != ("neuron" in image):
        found.append(f"{image} on {cell.settings.instance}")
    if image and cell.settings.compiler is Compiler.XLA and not is_neuron and "trcomp" not in image:
        found.append(f"{image} with compiler xla")
    return found


def test_some_controls_are_proposed() -> None:
    """The test above then has something to hold."""
    names = ("gpt2-compiler/original.yaml", "gptj-parallel/original.yaml", "strategies_cpu.yaml")
    suites = [load_suite(SUITES / name).suite for name in names]
    assert all(len(proposed(suite, suite.cells)) > 1 for suite in suites)


def script_suite(**changes: Any) -> Suite:
    document = {
        "name": "controls",
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


def only_confound(suite: Suite, measured: Mapping[str, int]) -> Confound:
    first, second = suite.cells
    found = known(
        find_confound(first, second, suite=suite, cells=(first, second), samples_per_step=measured)
    )
    return found


def measured_in(suite: Suite, *samples: int) -> dict[str, int]:
    return {cell.cell_id: each for cell, each in zip(suite.cells, samples, strict=True)}


def test_a_scripts_control_holds_the_measured_batch_by_the_argument_that_divides_it() -> None:
    suite = script_suite(
        matrix={"instance_count": [1, 2], "strategy": ["ddp"], "hyperparameters.batch_size": ["32"]}
    )
    found = only_confound(suite, measured_in(suite, 32, 64))
    assert [(each.name, each.first, each.second) for each in found.differences] == [
        ("instance_count", "1", "2"),
        ("global batch", "32", "64"),
    ]
    (control,) = found.controls
    assert control.include == {"instance_count": 2, "hyperparameters.batch_size": "16"}


@pytest.mark.parametrize("name", ["albert-scaling/rehearsal", "bert-trainium/original"])
def test_steps_that_follow_the_batch_are_no_difference_of_their_own(name: str) -> None:
    suite = load_suite(SUITES / f"{name}.yaml").suite
    cells = suite.cells
    measured = samples_per_step(suite, cells)
    for confound in confounds_of(suite, cells, measured):
        assert not {each.name for each in confound.differences} & {
            STEPS,
            "hyperparameters.max_train_steps",
        }
        for control in (
            each for each in confound.controls if each.cell_id is None and STEPS in each.include
        ):
            batch = control.include.get("hyperparameters.per_device_train_batch_size", 16)
            processes = 8 * control.include.get("instance_count", 2)
            assert control.include[STEPS] == -(-640_000 // (batch * processes))


def test_workers_that_fall_as_the_batch_grows_do_not_follow_it() -> None:
    suite = script_suite(
        matrix={
            "strategy": ["ddp"],
            "hyperparameters.batch_size": [16],
            "hyperparameters.workers": [8],
        },
        include=[{"hyperparameters.batch_size": 32, "hyperparameters.workers": 4}],
    )
    found = only_confound(suite, measured_in(suite, 16, 32))
    assert "hyperparameters.workers" in [each.name for each in found.differences]
    assert len(found.controls) == 2


def test_an_argument_that_the_include_entry_can_not_remove_makes_no_control() -> None:
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
    found = known(find_confound(first, other, suite=suite, cells=(first, other)))
    assert ("hyperparameters.stream", "yes", "default") in [
        (each.name, each.first, each.second) for each in found.differences
    ]
    assert "hyperparameters.stream" not in [control.isolates for control in found.controls]
    assert all("hyperparameters.stream" not in control.include for control in found.controls)


def test_an_image_goes_with_its_compiler() -> None:
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
    found = only_confound(suite, measured_in(suite, 40, 80))
    assert [each.name for each in found.differences] == [
        "compiler",
        "image",
        "hyperparameters.batch_size",
        "global batch",
    ]
    assert [control.isolates for control in found.controls] == [
        "compiler and image",
        "hyperparameters.batch_size",
    ]
