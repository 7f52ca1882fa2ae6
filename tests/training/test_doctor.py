"""The doctor says what is there, and what is there but can't be used."""

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

from tests.training.jobs import REPO_ROOT
from training.doctor import environment_facts, find_problems


def test_doctor_prints_versions_and_devices_and_finds_no_problem_here() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "training.doctor"], cwd=REPO_ROOT, capture_output=True, text=True, check=True
    )
    facts = json.loads(answer.stdout)
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["usable_cpu_count"] >= 1
    assert facts["problems"] == []


@pytest.mark.parametrize(
    ("accelerators", "fabric", "words"),
    [
        ({"nvidia_devices": 8}, {}, "8 NVIDIA devices are attached, but PyTorch finds no CUDA device"),
        ({"neuron_devices": 16}, {}, "torch-neuronx is not installed"),
        ({}, {"efa_devices": 4}, "libfabric is not installed"),
        ({"nvidia_devices": 1, "cuda_devices": [{}]}, {"efa_devices": 4, "libfabric": "1.22"}, "OFI plugin"),
    ],
)
def test_hardware_without_its_software_is_a_problem(
    accelerators: dict[str, Any], fabric: dict[str, Any], words: str
) -> None:
    facts = environment_facts()
    none = {"nvidia_devices": 0, "neuron_devices": 0, "cuda_devices": []}
    facts |= {
        "accelerators": none | accelerators,
        "fabric": {"efa_devices": 0, "libfabric": None, "ofi_plugin": None} | fabric,
    }
    (problem,) = find_problems(facts)
    assert words in problem
