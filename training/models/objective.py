"""A module of the model with its task's loss, so that wrappers and compilers apply to both.

A language model has ``logits`` [B, L, V] and ``labels`` [B, L], a sequence classification
``logits`` [B, C] and ``labels`` [B].
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.models.config_numbers import text_of

NO_CHUNKS = "training.loss_chunks can't be used"
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
    factor = getattr(model, "router_aux_loss_coef", getattr(model, "aux_loss_coef", None))
    if factor is None and "router_aux_loss_coef * aux_loss" in inspect.getsource(
        type(model).forward
    ):
        factor = text.router_aux_loss_coef
    return factor or 0.0


class ChunkedHead:
    """Takes the head out of a model, so that its logits are its hidden states, and applies it to
    ``rows`` of them at a time.
    """

    def __init__(self, model: PreTrainedModel, task: Task, rows: int) -> None:
        head: Any = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        if head is None:
            raise WorkloadError(f"{NO_CHUNKS}: a {model.config.model_type} has no head of its own")
        self._task = task
        self._rows = rows
        self._apply: Any = head.forward
        self._head = head
        head.forward = _unchanged

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Takes ``hidden`` [B, L, D] and returns [B, L, V]."""
        logits: torch.Tensor = self._apply(hidden)
        return logits

    @contextmanager
    def put_back(self) -> Iterator[None]:
        self._head.forward = self._apply
        try:
            yield
        finally:
            self._head.forward = _unchanged

    def loss(
        self, hidden: torch.Tensor, labels: torch.Tensor, autocast: torch.autocast | None
    ) -> torch.Tensor:
        """Takes ``hidden`` [B, L, D] and ``labels`` [B, L].

        Returns [], the number of ``task_loss`` of all logits at once: each row's loss is the same,
        and PyTorch's own mean adds them up.
        """
        rows = hidden.reshape(-1, hidden.shape[-1])
        wanted = _aligned(self._task, labels).flatten()

        def losses(part: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            """Takes ``part`` [N, D] and ``targets`` [N], and returns [N]."""
            with _uncached(autocast):
                logits = self._apply(part)
            return functional.cross_entropy(logits.float(), targets, reduction="none")

        parts = zip(torch.split(rows, self._rows), torch.split(wanted, self._rows), strict=True)
        of_rows = [checkpoint(losses, *part, use_reentrant=False) for part in parts]
        counted = wanted.masked_fill(wanted != IGNORED_LABEL, 0)
        return functional.nll_loss(-torch.cat(of_rows)[:, None], counted)


def _uncached(autocast: torch.autocast | None) -> AbstractContextManager[object]:
    """Each chunk casts the head's weight anew, so that their gradients are added in single
    precision.
    """
    if autocast is None:
        return nullcontext()
    return torch.autocast(autocast.device, autocast.fast_dtype, cache_enabled=False)


def _unchanged(hidden: torch.Tensor) -> torch.Tensor:
    """Takes ``hidden`` [B, L, D] and returns it."""
    return hidden


class Objective(nn.Module):
    """Gives in training mode the loss of a batch, in evaluation mode its score (see
    ``task_score``).

    ``weight`` corrects a rank's mean for its part of the labels, if ranks have different numbers of
    labels. The loss of a mixture's routers is added where its configuration asks for it; it is each
    rank's own, and no score. ``loss_chunks`` of None: all logits are there at once.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        task: Task,
        autocast: torch.autocast | None = None,
        loss_chunks: int | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self._task = task
        self._autocast = autocast
        self._router_factor = router_loss_factor(model)
        self._head = None if loss_chunks is None else ChunkedHead(model, task, loss_chunks)

    def forward(
        self,
        labels: torch.Tensor,
        weight: torch.Tensor | None = None,
        compares: torch.Tensor | None = None,
        **inputs: torch.Tensor,
    ) -> torch.Tensor:
        """Takes a batch. Returns [] in training mode, [3] in evaluation mode.

        With ``compares`` [] it returns [3]: how far the logits of the head, apart, are from the
        model's own, and the largest of these.
        """
        if "position_ids" in inputs:
            # transformers finds documents by their positions only without a mask, which a causal
            # model needs for no token before the padding.
            inputs.pop("attention_mask", None)
        with self._autocast or nullcontext():
            output: Any = self.model(**inputs)
        if not self.training:
            return self._evaluated(output.logits, labels, inputs, compares)
        if self._head is not None:
            loss = self._head.loss(output.logits, labels, self._autocast)
        else:
            loss = task_loss(self._task, output.logits, labels)
        if weight is not None:
            loss = loss * weight
        return loss + self._router_factor * output.aux_loss if self._router_factor else loss

    def _evaluated(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        inputs: Mapping[str, torch.Tensor],
        compares: torch.Tensor | None,
    ) -> torch.Tensor:
        """Takes ``logits`` [B, L, V] or [B, C], or hidden states [B, L, D] if the head is apart,
        and ``labels`` [B, L] or [B]. Returns [3].
        """
        if self._head is None:
            return task_score(self._task, logits, labels)
        with self._autocast or nullcontext():
            apart = self._head.logits(logits)
        if compares is None:
            return task_score(self._task, apart, labels)
        with self._head.put_back(), self._autocast or nullcontext():
            whole: torch.Tensor = self.model(**inputs).logits
        difference = (apart.float() - whole.float()).abs().max()
        return torch.stack([difference, whole.float().abs().max(), torch.zeros_like(difference)])
