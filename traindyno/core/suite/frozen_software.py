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
    """``state`` says what ended and when; ``replaced_by`` names the replacement."""

    name: str
    state: str
    replaced_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenUse:
    """A frozen software and the cells that use it."""

    software: FrozenSoftware
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """The input of a rule. ``repository`` and ``version`` are of AWS's image name, if the cell names one."""

    cell: Cell
    workload: Workload
    repository: str | None
    version: tuple[int, int]

    @property
    def is_on(self) -> AcceleratorKind | None:
        found = find_instance_type(self.cell.settings.instance)
        return None if found is None or found.is_local else found.accelerator_kind


def _uses_training_compiler(use: _Use) -> bool:
    is_gpu_xla = use.cell.settings.compiler is Compiler.XLA and use.is_on is AcceleratorKind.GPU
    return is_gpu_xla or "trcomp" in (use.repository or "")


def _uses_smp_v1(use: _Use) -> bool:
    given = arguments_of(use.cell, use.workload)
    return MODEL_PARALLEL_PARAMETERS in given and use.repository != SMP_V2_REPOSITORY


def _uses_xla_on_neuron(use: _Use) -> bool:
    return use.cell.settings.compiler is Compiler.XLA and use.is_on is AcceleratorKind.NEURON


def _uses_old_image(use: _Use) -> bool:
    return use.repository in PYTORCH_REPOSITORIES and use.version < FIRST_PATCHED_PYTORCH


RULES: tuple[tuple[FrozenSoftware, Callable[[_Use], bool]], ...] = (
    (
        FrozenSoftware(
            name="SageMaker Training Compiler",
            state="no new release since February 2023 (PyTorch 1.13.1)",
            replaced_by="compiler inductor",
        ),
        _uses_training_compiler,
    ),
    (
        FrozenSoftware(
            name="SageMaker's model parallel library, version 1",
            state="in AWS's images up to PyTorch 2.0.1 only",
            replaced_by="strategy tensor, pipeline or fsdp",
        ),
        _uses_smp_v1,
    ),
    (
        FrozenSoftware(
            name="SageMaker's model parallel library, version 2",
            state="the last release is 2.8.0 of April 2025 (PyTorch 2.5.1)",
            replaced_by="strategy tensor or fsdp",
        ),
        lambda use: use.repository == SMP_V2_REPOSITORY,
    ),
    (
        FrozenSoftware(
            name="SageMaker's data parallel library (SMDDP)",
            state="in AWS's images up to PyTorch 2.5 only",
            replaced_by="strategy ddp or fsdp",
        ),
        lambda use: TRAITS[use.cell.settings.strategy].sagemaker_collectives,
    ),
    (
        FrozenSoftware(
            name="PyTorch/XLA on Trainium",
            state="unsupported for training since Neuron 2.30 (PyTorch 2.9)",
            replaced_by="compiler neuron (TorchNeuron) on ml.trn2.48xlarge; nothing on Trn1",
        ),
        _uses_xla_on_neuron,
    ),
    (
        FrozenSoftware(
            name="AWS image of an old PyTorch",
            state="no longer patched, and AWS may remove it",
            replaced_by="the lab's image: leave image out",
        ),
        _uses_old_image,
    ),
)


def pytorch_version(image: str) -> tuple[int, int, int] | None:
    """By the tag of an AWS image for PyTorch; None if the image is another."""
    found = IMAGE.search(image)
    if found is None or found["repository"] not in VERSIONED_REPOSITORIES:
        return None
    return int(found["major"]), int(found["minor"]), int(found["patch"] or 0)


def find_frozen(cells: Sequence[Cell], workload: Workload) -> tuple[FrozenUse, ...]:
    """Each frozen software that a cell uses, with all its cells."""
    uses = [_use(cell, workload) for cell in cells]
    found = [(software, tuple(use.cell for use in uses if matches(use))) for software, matches in RULES]
    return tuple(FrozenUse(software=software, cells=users) for software, users in found if users)


def _use(cell: Cell, workload: Workload) -> _Use:
    image = IMAGE.search(cell.settings.image or workload.image or "")
    version = (int(image["major"]), int(image["minor"])) if image else FIRST_PATCHED_PYTORCH
    return _Use(cell=cell, workload=workload, repository=image["repository"] if image else None, version=version)


def frozen_notes(cells: Sequence[Cell], workload: Workload) -> Iterator[str]:
    """One sentence for each frozen software."""
    for use in find_frozen(cells, workload):
        software = use.software
        where = "all cells" if len(use.cells) == len(cells) else f"{len(use.cells)} of {len(cells)} cells"
        yield f"frozen software in {where}: {software.name}, {software.state}; use instead: {software.replaced_by}"
