"""The model and its task's loss in one module, so that wrappers and compilers apply to both.

A language model has ``logits`` [B, L, V] and ``labels`` [B, L], a sequence classification
``logits`` [B, C] and ``labels`` [B].
"""

import inspect
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from traindyno.core.suite.choices import Task
from training.models.config_numbers import text_of

IGNORED_LABEL = -100  # PyTorch's cross entropy leaves it out by default


def task_loss(task: Task, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Returns [], the mean cross entropy over the labels that count."""
    return functional.cross_entropy(*_flat(task, logits, labels))


def summed_task_loss(task: Task, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Returns [], the sum of the labels' losses.

    The sums of a batch's parts, divided by ``counted_labels`` of the whole batch, add up to its
    mean.
    """
    return functional.cross_entropy(*_flat(task, logits, labels), reduction="sum")


def counted_labels(task: Task, labels: torch.Tensor) -> torch.Tensor:
    """Returns [], the number of labels that count."""
    return (_aligned(task, labels) != IGNORED_LABEL).sum()


def task_score(task: Task, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Returns [3]: the sum of losses, right answers and labels that count.

    They add up over batches and ranks.
    """
    logits, labels = _flat(task, logits, labels)
    loss_sum = functional.cross_entropy(logits, labels, reduction="sum")
    counted = labels != IGNORED_LABEL
    right = (logits.argmax(-1) == labels) & counted
    return torch.stack([loss_sum, right.sum().float(), counted.sum().float()])


def _flat(
    task: Task, logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns logits and labels of all N predictions: [N, V] or [N, C] in single precision, and
    [N].
    """
    return logits.reshape(-1, logits.shape[-1]).float(), _aligned(task, labels).reshape(-1)


def _aligned(task: Task, labels: torch.Tensor) -> torch.Tensor:
    """Returns labels of the shape of ``labels``: [B, L] or [B].

    A causal model's output predicts the next token.
    """
    if task is Task.CAUSAL_LM:
        return functional.pad(labels[:, 1:], (0, 1), value=IGNORED_LABEL)
    return labels


def router_loss_factor(model: PreTrainedModel) -> float:
    """What transformers multiplies the routers' loss of a mixture of experts by, before it adds it
    to the model's.

    0 if the configuration does not ask for it (``output_router_logits``), or the model's head does
    not add it.
    """
    text = text_of(model.config)
    if not getattr(text, "output_router_logits", False):
        return 0.0
    found = getattr(model, "router_aux_loss_coef", getattr(model, "aux_loss_coef", None))
    if found is None and "router_aux_loss_coef * aux_loss" in inspect.getsource(
        type(model).forward
    ):
        found = text.router_aux_loss_coef
    return found or 0.0


class Objective(nn.Module):
    """Gives in training mode the loss of a batch, in evaluation mode its score (see
    ``task_score``).

    ``weight`` corrects a rank's mean for its part of the labels, if ranks have different numbers of
    labels. The loss of a mixture's routers is added where its configuration asks for it; it is each
    rank's own, and no score.
    """

    def __init__(
        self, model: PreTrainedModel, task: Task, autocast: torch.autocast | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self._task = task
        self._autocast = autocast
        self._router_factor = router_loss_factor(model)

    def forward(
        self, labels: torch.Tensor, weight: torch.Tensor | None = None, **inputs: torch.Tensor
    ) -> torch.Tensor:
        """Takes a batch. Returns [] in training mode, [3] in evaluation mode."""
        if "position_ids" in inputs:
            # transformers finds documents by their positions only without a mask, which a causal
            # model needs for no token before the padding.
            inputs.pop("attention_mask", None)
        with self._autocast or nullcontext():
            output: Any = self.model(**inputs)
        if not self.training:
            return task_score(self._task, output.logits, labels)
        loss = task_loss(self._task, output.logits, labels)
        if weight is not None:
            loss = loss * weight
        return loss + self._router_factor * output.aux_loss if self._router_factor else loss
