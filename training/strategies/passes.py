"""The forward and backward passes of a step, and evaluation: of a whole model, or of stages of a pipeline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.distributed import ProcessGroup
from torch.distributed.fsdp import FSDPModule
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from traindyno.core.suite.choices import PipelineSchedule
from training.data.batch import Batch
from training.errors import WorkloadError
from training.models.blueprint import saved_activations
from training.models.objective import counted_labels, summed_task_loss, task_score
from training.strategies import Setup
from training.strategies.whole_model import train_batches

Shape = tuple[int, ...]


class Schedules:
    """One for each shape of batch: within a schedule, the tensors between stages have a fixed shape [B, L, D]."""

    def __init__(
        self, stages: Mapping[int, nn.Module], stage_count: int, setup: Setup, inner_group: ProcessGroup
    ) -> None:
        self._stages = stages
        self._stage_count = stage_count
        self._setup = setup
        self._group = inner_group
        self._training: dict[Shape, Any] = {}
        self._evaluation: dict[Shape, Any] = {}
        self._factor: torch.Tensor
        self.has_last_stage = stage_count - 1 in stages

    def train(self, batch: Batch, factor: torch.Tensor) -> torch.Tensor:
        """Returns [], the sum of the labels' losses times ``factor`` [] where the last stage is, zero elsewhere."""
        shape = tuple(batch["input_ids"].shape)
        self._factor = factor
        if shape in self._training:
            return self._step(self._training[shape], batch)
        count = self._setup.settings.micro_batches
        if shape[0] % count:
            raise WorkloadError(f"micro_batches is {count}, which does not divide a batch of {shape[0]} samples")
        self._training[shape] = self._make(count, self._loss)
        with _kept_gradients(self._stages.values()):
            return self._step(self._training[shape], batch)

    def _step(self, schedule: Any, batch: Batch) -> torch.Tensor:
        """Returns [], the sum of the losses where the last stage is, zero elsewhere."""
        losses: list[torch.Tensor] = []
        schedule.step(
            *self._first_input(batch), target=batch["labels"], losses=losses, return_outputs=False, **_for_all(batch)
        )
        return torch.stack(losses).sum().detach() if losses else torch.zeros_like(self._factor)

    def evaluate(self, batch: Batch) -> torch.Tensor | None:
        """Returns the logits, [B, L, V] or [B, C], where the last stage is."""
        shape = tuple(batch["input_ids"].shape)
        if shape not in self._evaluation:
            self._evaluation[shape] = self._make(1, None)
        logits: torch.Tensor | None = self._evaluation[shape].step(*self._first_input(batch), **_for_all(batch))
        return logits

    def _loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Takes ``logits`` [B, L, V] or [B, C], ``labels`` [B, L] or [B] of a micro-batch and returns []."""
        return summed_task_loss(self._setup.task, logits, labels) * self._factor

    def _make(self, micro_batches: int, loss: Any) -> Any:
        device = self._setup.accelerator.device
        stages: list[Any] = [
            PipelineStage(stage, number, self._stage_count, device, group=self._group)
            for number, stage in self._stages.items()
        ]
        options = {"n_microbatches": micro_batches, "loss_fn": loss, "scale_grads": False}
        match self._setup.settings.pipeline_schedule:
            case PipelineSchedule.INTERLEAVED:
                return ScheduleInterleaved1F1B(stages, **options)
            case PipelineSchedule.ONE_F_ONE_B if loss is not None:
                return Schedule1F1B(stages[0], **options)
            case _:
                return ScheduleGPipe(stages[0], **options)

    def _first_input(self, batch: Batch) -> tuple[torch.Tensor, ...]:
        """The tokens [B, L] on the first stage."""
        return (batch["input_ids"],) if 0 in self._stages else ()


@contextmanager
def _kept_gradients(stages: Iterable[nn.Module]) -> Iterator[None]:
    """A schedule's first step tries the stages for the shapes between them, and then drops gradients of sharded
    parameters: those of earlier batches too, if batches are accumulated.
    """
    kept = [(each, each.grad) for stage in stages for each in stage.parameters() if each.grad is not None]
    for parameter, _ in kept:
        parameter.grad = None
    yield
    for parameter, gradient in kept:
        parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def _for_all(batch: Batch) -> dict[str, torch.Tensor]:
    """What every stage gets of the batch, each [B, L]."""
    given: Batch = {name: batch[name] for name in ("attention_mask", "position_ids") if name in batch}
    return {"tokens": batch["input_ids"], **given}


class WholePasses:
    """``objective`` gives the loss, and may be sharded: then gradients are reduced with a step's last batch."""

    def __init__(self, objective: nn.Module, setup: Setup) -> None:
        self._objective = objective
        self._setup = setup

    def train(self, batches: Sequence[Batch]) -> torch.Tensor:
        """Leave the gradients of the mean loss of ``batches``. Returns [], this mean, unscaled."""
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
        """Leave the gradients of the mean loss of ``batches``. Returns [], this mean; None on ranks that hold none."""
        one = torch.ones((), device=self._setup.accelerator.device)
        scale = self._setup.number_format.scale(one)
        losses = []
        for batch in batches:
            labels = counted_labels(self._setup.task, batch["labels"])
            with saved_activations(self._setup.settings):
                losses.append(self._schedules.train(batch, scale / len(batches) * batch.get("weight", 1.0) / labels))
        return torch.stack(losses).sum() / scale if self._schedules.has_last_stage else None

    def score(self, batch: Batch) -> torch.Tensor | None:
        with self._setup.compiler.eagerly():
            logits = self._schedules.evaluate(batch)
        return None if logits is None else task_score(self._setup.task, logits, batch["labels"])


Passes = WholePasses | StagedPasses
