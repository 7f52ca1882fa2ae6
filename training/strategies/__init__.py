"""The strategies that distribute one model over processes.

To add one: a module here with its class, a line below, and its name and traits in
``traindyno/core/suite/choices.py``.

A strategy is applied to a model from outside: models are written for one device. The loop calls, in
this order, ``place``, ``build_optimizer``, then ``forward_backward`` and ``clip_gradients`` for
each step, ``score`` to evaluate and ``stream_state_dict`` to save. Checkpoints read and write
``named_tensors``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer

from traindyno.core.run.settings import Settings
from traindyno.core.suite.choices import Strategy, Task, strategies_with
from training.accelerators import Accelerator
from training.compilers import ModelCompiler, build_compiler
from training.data.batch import Batch
from training.errors import WorkloadError
from training.models.blueprint import Blueprint
from training.models.number_format import NumberFormat, number_format
from training.process.process_group import Topology

CLASSES = {
    Strategy.SINGLE: "training.strategies.whole_model:OneProcess",
    Strategy.DDP: "training.strategies.ddp:DataParallel",
    Strategy.SMDDP: "training.strategies.ddp:SageMakerDataParallel",
    Strategy.FSDP: "training.strategies.mesh:MeshParallel",
    Strategy.ZERO1: "training.strategies.zero1:ShardedOptimizerState",
    Strategy.TENSOR: "training.strategies.mesh:MeshParallel",
    Strategy.PIPELINE: "training.strategies.mesh:MeshParallel",
    Strategy.MESH: "training.strategies.mesh:MeshParallel",
}

OptimizerBuilder = Callable[[Iterable[nn.Parameter]], Optimizer]
# The other strategies send tensors between devices through torch.distributed, which XLA devices
# don't support.
OF_DEVICES_THAT_AVERAGE_THEMSELVES = strategies_with(lambda traits: traits.runs_with_xla)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The input of a strategy."""

    settings: Settings
    task: Task
    topology: Topology
    accelerator: Accelerator
    compiler: ModelCompiler
    number_format: NumberFormat


def set_up(settings: Settings, task: Task, topology: Topology) -> Setup:
    compiler = build_compiler(settings.compiler)
    accelerator = compiler.accelerator(topology)
    return Setup(
        settings=settings,
        task=task,
        topology=topology,
        accelerator=accelerator,
        compiler=compiler,
        number_format=number_format(settings.precision, accelerator.device),
    )


class TrainingStrategy(Protocol):
    """Ranks with the same ``data_rank`` work on one replica of the model and read the same
    batches.
    """

    data_rank: int
    data_world_size: int

    @property
    def layout(self) -> Mapping[str, Any]:
        """How the checkpointed tensors differ from transformers': a run of another layout can't
        resume from them.
        """
        return {}

    def place(self, blueprint: Blueprint) -> None:
        """Materialise the model, or this rank's part of it, on the device; wrap and compile it."""

    def build_optimizer(self, build: OptimizerBuilder) -> Optimizer:
        """The optimizer of the parameters that this rank updates."""

    def forward_backward(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        """Leave in ``grad`` the mean gradient of one step's batches over all replicas, scaled by
        the number format.

        Returns [], the mean loss of this replica's batches, unscaled and without a graph; None on
        ranks that hold none.
        """

    def clip_gradients(self, max_norm: float) -> None:
        """Clip by the norm of the whole model's gradient, on each rank for its own part."""

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        """Make ``overflow`` [], 0 or 1, the same on all ranks, in place; a no-op where all hold the
        same gradients.
        """

    def share(self, count: int) -> int:
        """This rank's part of its replica's samples or tokens; the parts of a replica's ranks add
        up to ``count``.
        """

    def score(self, batch: Batch) -> torch.Tensor | None:
        """Returns [3], ``task_score`` of the batch, in no-grad and evaluation mode; None on ranks
        without it.
        """

    def set_training(self, is_training: bool) -> None: ...

    def named_tensors(self) -> dict[str, torch.Tensor]:
        """This rank's parameters and buffers [...] by transformers' names, each once; DTensors if
        they are sharded.

        They are the tensors themselves, so that a checkpoint can be read into them.
        """

    def updates(self, parameter: nn.Parameter) -> bool:
        """Whether this rank keeps the optimizer's state of the parameter."""
        return True

    def stream_state_dict(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The whole model's tensors [...] on the CPU, by transformers' names: on rank 0, nothing
        elsewhere.

        They come one after the other, so that no rank holds them all. Every rank must iterate to
        the end.
        """


def build_strategy(setup: Setup) -> TrainingStrategy:
    name = setup.settings.strategy
    if setup.accelerator.averages_gradients and name not in OF_DEVICES_THAT_AVERAGE_THEMSELVES:
        raise WorkloadError(
            f"strategy {name} does not run on device {setup.accelerator.name}; expected strategy "
            f"{' or '.join(OF_DEVICES_THAT_AVERAGE_THEMSELVES)}"
        )
    strategy: TrainingStrategy = resolve_name(CLASSES[name])(setup)
    return strategy
