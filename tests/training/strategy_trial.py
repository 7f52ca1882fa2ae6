"""Trains one case for ten steps and says which losses and which model came out."""

from dataclasses import dataclass

import torch
from torch import distributed
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from tests.training.strategy_cases import STEP_COUNT, WORKLOADS, Case, blueprint_of, step_batches
from training.models.optimizer import build_optimizer
from training.process.process_group import Topology
from training.strategies import Setup, TrainingStrategy, build_strategy, set_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A trained model; the count of elements is of the optimizer's state on this rank."""

    losses: list[float]
    state: dict[str, torch.Tensor]
    optimizer_elements: int


def train(case: Case, topology: Topology) -> Trained:
    setup = make_setup(case, topology)
    return _train(case, setup, build_strategy(setup))


def make_setup(case: Case, topology: Topology) -> Setup:
    return set_up(case.settings(1), WORKLOADS[case.model][0], topology)


def _train(case: Case, setup: Setup, strategy: TrainingStrategy) -> Trained:
    settings = case.settings(strategy.data_world_size)
    strategy.place(blueprint_of(case))
    optimizer = strategy.build_optimizer(
        lambda parameters: build_optimizer(parameters, settings, settings.learning_rate.base)
    )
    strategy.set_training(True)
    losses = []
    for step in range(STEP_COUNT):
        batches = step_batches(case, settings, step, strategy.data_rank, strategy.data_world_size)
        loss = strategy.forward_backward([setup.accelerator.to_device(batch) for batch in batches])
        setup.number_format.step(
            optimizer,
            lambda: (
                strategy.clip_gradients(settings.gradient_clip_norm)
                if settings.gradient_clip_norm
                else None
            ),
            strategy.agree_on_overflow,
        )
        optimizer.zero_grad()
        setup.accelerator.end_step()
        losses.append(_mean_over_holders(loss))
    return Trained(
        losses=losses,
        state=dict(strategy.stream_state_dict()),
        optimizer_elements=_elements(optimizer),
    )


def _elements(optimizer: Optimizer) -> int:
    kept = [
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    ]
    return sum(
        (value.to_local() if isinstance(value, DTensor) else value).numel()
        for value in kept
        if value.ndim
    )


def _mean_over_holders(loss: torch.Tensor | None) -> float:
    total = torch.tensor([0.0, 0.0] if loss is None else [float(loss), 1.0])
    if distributed.is_initialized():
        distributed.all_reduce(total)
    return float(total[0] / total[1])
