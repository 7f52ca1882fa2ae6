"""The base of strategies in which every rank calls the whole model: single, ddp, smddp, zero1."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.optim import Optimizer

from training.data.batch import Batch
from training.errors import WorkloadError
from training.models.blueprint import Blueprint, saved_activations
from training.models.four_bits import whole_values
from training.models.objective import Objective
from training.strategies import OptimizerBuilder, Setup, TrainingStrategy


class WholeModelStrategy(TrainingStrategy):
    """Subclasses say how the objective is wrapped, and override what their wrapping changes."""

    data_rank = 0
    data_world_size = 1

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._objective: Objective
        self._module: nn.Module
        self._parameters: list[nn.Parameter]

    def place(self, blueprint: Blueprint) -> None:
        model = blueprint.model
        self._objective = Objective(
            model,
            self._setup.task,
            self._setup.number_format.autocast(),
            self._setup.settings.loss_chunks,
        )
        blueprint.materialise(self._setup.accelerator.device)
        self._module = self._setup.compiler.compile(self._wrap(self._objective))
        # Kept, because finding them in every step would iterate over all modules.
        self._parameters = list(self._objective.parameters())

    def _wrap(self, objective: Objective) -> nn.Module:
        return objective

    def build_optimizer(self, build: OptimizerBuilder) -> Optimizer:
        return build(self._parameters)

    def forward_backward(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        loss = train_batches(self._module, batches, self._setup, self._without_exchange)
        self._after_backward()
        return loss

    def _without_exchange(self) -> AbstractContextManager[None]:
        """The context of backward passes in which ranks exchange nothing."""
        return nullcontext()

    def _after_backward(self) -> None:
        """Average the gradients, if the backward pass did not."""

    def clip_gradients(self, max_norm: float) -> None:
        nn.utils.clip_grad_norm_(self._parameters, max_norm)

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        """Nothing is to do for ``overflow`` []: every rank holds the same averaged gradients."""

    def share(self, count: int) -> int:
        return count

    def score(self, batch: Batch) -> torch.Tensor | None:
        # Not through the wrapper: ranks may have different numbers of evaluation batches.
        score: torch.Tensor = self._objective(**batch)
        return score

    def set_training(self, is_training: bool) -> None:
        self._module.train(is_training)

    def named_tensors(self) -> dict[str, torch.Tensor]:
        return each_once(self._objective.model.state_dict(keep_vars=True))

    def stream_state_dict(self) -> Iterator[tuple[str, torch.Tensor]]:
        if self._setup.topology.is_first:
            yield from (
                (name, tensor.cpu()) for name, tensor in whole_values(self._objective.model)
            )


class OneProcess(WholeModelStrategy):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if setup.topology.world_size != 1:
            raise WorkloadError(
                f"strategy single was started with {setup.topology.world_size} processes; expected "
                "one process, or strategy ddp"
            )


def train_batches(
    objective: nn.Module,
    batches: Sequence[Batch],
    setup: Setup,
    without_communication: Callable[[], AbstractContextManager[None]],
) -> torch.Tensor:
    """Adds up the gradients of the batches' mean loss, of all but the last
    ``without_communication``.

    Returns [], this mean, unscaled and without a graph.
    """
    if len(batches) == 1:
        loss = _loss(objective, batches[0], setup)
        setup.number_format.scale(loss).backward()  # type: ignore[no-untyped-call]
        return loss.detach()
    total = torch.zeros((), device=setup.accelerator.device)
    for number, batch in enumerate(batches, start=1):
        with nullcontext() if number == len(batches) else without_communication():
            loss = _loss(objective, batch, setup) / len(batches)
            setup.number_format.scale(loss).backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    return total


def _loss(objective: nn.Module, batch: Batch, setup: Setup) -> torch.Tensor:
    """Returns [], the batch's loss."""
    with saved_activations(setup.settings):
        loss: torch.Tensor = objective(**batch)
    return loss


def each_once(named: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns each tensor [...] once; a tied tensor by the first of its names."""
    first_names = {id(tensor): name for name, tensor in reversed(list(named.items()))}
    return {name: tensor for name, tensor in named.items() if first_names[id(tensor)] == name}
