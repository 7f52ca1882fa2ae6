"""The forward and backward passes of a step, and evaluation: of a whole model, or of stages of a pipeline."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import nn
from torch.distributed import ProcessGroup
from torch.distributed.fsdp import FSDPModule

from training.data.batch import Batch
from training.models.blocks import saved_activations
from training.models.objective import counted_labels, task_score
from training.strategies import Setup
from training.strategies.pipeline_schedules import Schedules
from training.strategies.whole_model import train_batches


class Passes(Protocol):
    def train(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        """Leave the gradients of the mean loss of ``batches``, scaled by the number format.

        Returns [], this mean, unscaled; None on ranks that hold none.
        """

    def score(self, batch: Batch) -> torch.Tensor | None:
        """Returns [3], ``task_score`` of the batch; None on ranks without it."""


class WholePasses:
    """``objective`` gives the loss, and may be sharded: then gradients are reduced with a step's last batch."""

    def __init__(self, objective: nn.Module, setup: Setup) -> None:
        self._objective = objective
        self._setup = setup

    def train(self, batches: Sequence[Batch]) -> torch.Tensor:
        return train_batches(self._objective, batches, self._setup, self._unreduced)

    @contextmanager
    def _unreduced(self) -> Iterator[None]:
        sharded = self._objective if isinstance(self._objective, FSDPModule) else None
        if sharded:
            sharded.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            if sharded:
                sharded.set_requires_gradient_sync(True)

    def score(self, batch: Batch) -> torch.Tensor:
        with self._setup.compiler.eagerly():
            score: torch.Tensor = self._objective(**batch)
        return score


class StagedPasses:
    """``stages`` are this process's, by number."""

    def __init__(self, stages: Mapping[int, nn.Module], stage_count: int, setup: Setup, group: ProcessGroup) -> None:
        self._setup = setup
        self._schedules = Schedules(stages, stage_count, setup, group)

    def train(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        one = torch.ones((), device=self._setup.accelerator.device)
        scale = self._setup.number_format.scale(one)
        losses = [self._train_one(batch, scale / len(batches)) for batch in batches]
        return torch.stack(losses).sum() / scale if self._schedules.has_last_stage else None

    def _train_one(self, batch: Batch, factor: torch.Tensor) -> torch.Tensor:
        """Returns [], the batch's loss times ``factor`` [] where the last stage is, else zero."""
        factor = factor * batch.get("weight", 1.0) / counted_labels(self._setup.task, batch["labels"])
        with saved_activations(self._setup.settings):
            return self._schedules.train(batch, factor)

    def score(self, batch: Batch) -> torch.Tensor | None:
        with self._setup.compiler.eagerly():
            logits = self._schedules.evaluate(batch)
        return None if logits is None else task_score(self._setup.task, logits, batch["labels"])
