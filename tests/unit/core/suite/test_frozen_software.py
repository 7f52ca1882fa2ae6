"""Software that AWS no longer develops is found in the cells that use it, and named with its replacement."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.suites import script_document
from traindyno.api.suite_loading import load_suite
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.frozen_software import frozen_notes

SUITES = Path(__file__).parents[4] / "suites"
COMPILER = "SageMaker Training Compiler"
SMP_V1 = "SageMaker's model parallel library, version 1"
SMDDP = "SageMaker's data parallel library (SMDDP)"
XLA_ON_NEURON = "PyTorch/XLA on Trainium"
OLD_IMAGE = "AWS image of an old PyTorch"


@pytest.mark.parametrize(
    ("pack", "expected"),
    [
        ("gpt2-compiler", {COMPILER: 1, OLD_IMAGE: 1}),
        ("gptj-parallel", {SMP_V1: 9, OLD_IMAGE: 9}),
        ("albert-scaling", {SMDDP: 41, OLD_IMAGE: 45}),
        ("bert-trainium", {XLA_ON_NEURON: 1, OLD_IMAGE: 2}),
    ],
)
def test_every_original_suite_is_marked_with_its_frozen_software(pack: str, expected: dict[str, int]) -> None:
    suite = load_suite(SUITES / pack / "original.yaml").suite
    cells = expand_cells(suite)
    found = [*frozen_notes(cells, suite.workload)]
    where = {name: "all cells" if n == len(cells) else f"{n} of {len(cells)} cells" for name, n in expected.items()}
    assert len(found) == len(expected)
    assert all(any(f"in {where[name]}: {name}, " in note for note in found) for name in expected)


@pytest.mark.parametrize("pack", ["gpt2-compiler", "gptj-parallel", "albert-scaling"])
def test_modern_suites_on_gpus_use_none(pack: str) -> None:
    suite = load_suite(SUITES / pack / "modern.yaml").suite
    assert [*frozen_notes(expand_cells(suite), suite.workload)] == []


def notes(**workload: Any) -> list[str]:
    suite = parse_suite(script_document(workload={**script_document()["workload"], **workload}))
    return [*frozen_notes(expand_cells(suite), suite.workload)]


def test_a_note_names_state_cells_and_replacement() -> None:
    (note,) = notes(image="pytorch-training:2.9.0-gpu-py312")
    assert note == (
        "frozen software in all cells: AWS image of an old PyTorch, no longer patched, and AWS may remove it;"
        " use instead: the lab's image: leave image out"
    )
    assert notes(image="pytorch-training:2.10.0-gpu-py313") == []
    assert notes(image="111122223333.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:1.12-gpu-py38") != []


def test_version_2_of_the_model_parallel_library_is_not_taken_for_version_1() -> None:
    image = "658645717510.dkr.ecr.us-east-1.amazonaws.com/smdistributed-modelparallel:2.5.1-gpu-py311-cu124"
    (note,) = notes(image=image, hyperparameters={"mp_parameters": "{}"})
    assert "version 2" in note
