"""One stage of a pipeline: some of a model's blocks, with its embeddings on the first and its head on the last."""

from contextlib import nullcontext
from copy import copy
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from training.errors import WorkloadError
from training.strategies.pipeline_families import BlockArguments, family_of


class Stage(nn.Module):
    """Every stage of a replica gets the batch's tokens and mask, [B, L]; hidden states [B, L, D] are sent from stage to
    stage.
    """

    def __init__(
        self,
        *,
        embed: nn.Module | None,
        blocks: list[nn.Module],
        block_arguments: BlockArguments,
        head: PreTrainedModel | None,
        autocast: torch.autocast | None,
    ) -> None:
        super().__init__()
        self.embed = embed
        self.blocks = nn.ModuleList(blocks)
        self.head = head
        self._block_arguments = block_arguments
        self._autocast = autocast

    def forward(
        self, received: torch.Tensor, *, tokens: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """``received`` [B, L] or [B, L, D] are tokens or hidden states. ``tokens`` [B, L], ``attention_mask`` [B, L].

        Returns hidden states [B, L, D] or, from the last stage, logits: [B, L, V] or [B, C].
        """
        with self._autocast or nullcontext():
            hidden = received if self.embed is None else self.embed(received)
            arguments = self._block_arguments(hidden, attention_mask)
            for block in self.blocks:
                output = block(hidden, **arguments)
                hidden = output[0] if isinstance(output, tuple) else output
            if self.head is None:
                return hidden
            output = self.head(input_ids=tokens, inputs_embeds=hidden, attention_mask=attention_mask)
            logits: torch.Tensor = output.logits
            return logits


def cut(model: PreTrainedModel, stage_count: int, autocast: torch.autocast | None) -> list[Stage]:
    """Returns all stages, which share the model's parameters; a rank keeps its own."""
    family = family_of(model)
    block_count = len(family.blocks)
    if block_count < stage_count:
        raise WorkloadError(
            f"strategy pipeline asks for {stage_count} stages, but this {model.config.model_type} has "
            f"{block_count} blocks; expected at least one block for each stage"
        )
    return [
        Stage(
            embed=family.embed if number == 0 else None,
            blocks=family.blocks[number * block_count // stage_count : (number + 1) * block_count // stage_count],
            block_arguments=family.block_arguments,
            head=_head(model, family.finish) if number == stage_count - 1 else None,
            autocast=autocast,
        )
        for number in range(stage_count)
    ]


def _head(model: PreTrainedModel, finish: nn.Module) -> PreTrainedModel:
    """A model with its own ``forward`` and ``finish`` in the place of its base: any task's head, and no blocks."""
    head: Any = copy(model)
    head._modules = dict(model._modules)
    setattr(head, model.base_model_prefix, finish)
    return head  # type: ignore[no-any-return]
