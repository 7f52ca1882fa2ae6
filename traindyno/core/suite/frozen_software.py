"""Software of a suite that AWS no longer develops: its name, its state, and its replacement."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.instances.instance_types import AcceleratorKind, find_instance_type
from traindyno.core.suite.arguments import arguments_of
from traindyno.core.suite.checks.job_limits_check import MODEL_PARALLEL_PARAMETERS
from traindyno.core.suite.choices import TRAITS, Compiler
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.workload import Workload

IMAGE = re.compile(r"(?:^|/)(?P<repository>[a-z0-9-]+):(?P<major>\d+)\.(?P<minor>\d+)(?:\.(?P<patch>\d+))?")
PYTORCH_REPOSITORIES = ("pytorch-training", "huggingface-pytorch-training")
SMP_V2_REPOSITORY = "smdistributed-modelparallel"
# The SageMaker SDK selects images of these by a framework version.
VERSIONED_REPOSITORIES = (
    *PYTORCH_REPOSITORIES,
    *("pytorch-training-neuron", "pytorch-trcomp-training"),
    *("huggingface-pytorch-training-neuronx", "huggingface-pytorch-trcomp-training"),
    SMP_V2_REPOSITORY,
)
# SageMaker starts several processes of earlier versions with mpirun.
FIRST_TORCHRUN_VERSION = (1, 13, 1)
# AWS patches an image for a year from its release: 2.9 until October 2026, 2.10 until January 2027.
FIRST_PATCHED_PYTORCH = (2, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSoftware:
    """``state`` says what ended and when; ``replaced_by`` names the replacement. ``is_used``: by this cell, on this
    kind of accelerator of AWS, with an AWS image of this repository and version; None where there is none.
    """

    name: str
    state: str
    replaced_by: str
    is_used: Callable[[Cell, Workload, AcceleratorKind | None, str | None, tuple[int, int]], bool]


FROZEN = (
    FrozenSoftware(
        name="SageMaker Training Compiler",
        state="no new release since February 2023 (PyTorch 1.13.1)",
        replaced_by="compiler inductor",
        is_used=lambda cell, _, kind, repository, __: (
            (cell.settings.compiler is Compiler.XLA and kind is AcceleratorKind.GPU) or "trcomp" in (repository or "")
        ),
    ),
    FrozenSoftware(
        name="SageMaker's model parallel library, version 1",
        state="in AWS's images up to PyTorch 2.0.1 only",
        replaced_by="strategy tensor, pipeline or fsdp",
        is_used=lambda cell, workload, _, repository, __: (
            MODEL_PARALLEL_PARAMETERS in arguments_of(cell, workload) and repository != SMP_V2_REPOSITORY
        ),
    ),
    FrozenSoftware(
        name="SageMaker's model parallel library, version 2",
        state="the last release is 2.8.0 of April 2025 (PyTorch 2.5.1)",
        replaced_by="strategy tensor or fsdp",
        is_used=lambda _, __, ___, repository, ____: repository == SMP_V2_REPOSITORY,
    ),
    FrozenSoftware(
        name="SageMaker's data parallel library (SMDDP)",
        state="in AWS's images up to PyTorch 2.5 only",
        replaced_by="strategy ddp or fsdp",
        is_used=lambda cell, *_: TRAITS[cell.settings.strategy].sagemaker_collectives,
    ),
    FrozenSoftware(
        name="PyTorch/XLA on Trainium",
        state="unsupported for training since Neuron 2.30 (PyTorch 2.9)",
        replaced_by="compiler neuron (TorchNeuron) on ml.trn2.48xlarge; nothing on Trn1",
        is_used=lambda cell, _, kind, *__: cell.settings.compiler is Compiler.XLA and kind is AcceleratorKind.NEURON,
    ),
    FrozenSoftware(
        name="AWS image of an old PyTorch",
        state="no longer patched, and AWS may remove it",
        replaced_by="the lab's image: leave image out",
        is_used=lambda _, __, ___, repository, version: (
            repository in PYTORCH_REPOSITORIES and version < FIRST_PATCHED_PYTORCH
        ),
    ),
)


def pytorch_version(image: str) -> tuple[int, int, int] | None:
    """By the tag of an AWS image for PyTorch; None if the image is another."""
    found = IMAGE.search(image)
    if found is None or found["repository"] not in VERSIONED_REPOSITORIES:
        return None
    return int(found["major"]), int(found["minor"]), int(found["patch"] or 0)


def frozen_notes(cells: Sequence[Cell], workload: Workload) -> Iterator[str]:
    """One sentence for each frozen software that a cell uses."""
    for software in FROZEN:
        count = sum(_uses(cell, workload, software) for cell in cells)
        if count:
            where = "all cells" if count == len(cells) else f"{count} of {len(cells)} cells"
            yield f"frozen software in {where}: {software.name}, {software.state}; use instead: {software.replaced_by}"


def _uses(cell: Cell, workload: Workload, software: FrozenSoftware) -> bool:
    image = IMAGE.search(cell.settings.image or workload.image or "")
    version = (int(image["major"]), int(image["minor"])) if image else FIRST_PATCHED_PYTORCH
    found = find_instance_type(cell.settings.instance)
    kind = None if found is None or found.is_local else found.accelerator_kind
    return software.is_used(cell, workload, kind, image["repository"] if image else None, version)
