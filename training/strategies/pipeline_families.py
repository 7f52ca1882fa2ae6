"""The models that can be split into pipeline stages: the parts before, between and after their blocks.

In their shapes, B is the number of samples of a micro-batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_outputs import (
    BaseModelOutputWithPastAndCrossAttentions,
    BaseModelOutputWithPoolingAndCrossAttentions,
)

from training.errors import WorkloadError

BlockArguments = Callable[[torch.Tensor, torch.Tensor | None], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """``embed`` maps token ids to hidden states; ``finish`` takes the place of the whole base model after its blocks.

    ``blocks`` are in the order in which they are called: one that is called again appears again.
    """

    embed: nn.Module
    blocks: list[nn.Module]
    block_arguments: BlockArguments
    finish: nn.Module


class EmbedWithPositions(nn.Module):
    """The embeddings of GPT-2, and of GPT-J, which has no position table."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.wte = base.wte
        self.wpe = getattr(base, "wpe", None)
        self.drop = base.drop

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Takes ``input_ids`` [B, L] and returns [B, L, D]."""
        hidden: torch.Tensor = self.wte(input_ids)
        if self.wpe is not None:
            hidden = hidden + self.wpe(_positions(input_ids))
        return self.drop(hidden)  # type: ignore[no-any-return]


class EmbedWithTypes(nn.Module):
    """The embeddings of BERT, and of ALBERT, which then widens them."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.embeddings = base.embeddings
        self.widen = getattr(base.encoder, "embedding_hidden_mapping_in", nn.Identity())

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Takes ``input_ids`` [B, L] and returns [B, L, D]."""
        return self.widen(self.embeddings(input_ids=input_ids))  # type: ignore[no-any-return]


class FinishDecoder(nn.Module):
    def __init__(self, base: Any) -> None:
        super().__init__()
        self.ln_f = base.ln_f

    def forward(
        self, *_: Any, inputs_embeds: torch.Tensor, **_others: Any
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """``inputs_embeds`` [B, L, D] are the last block's output; ``last_hidden_state`` has their shape."""
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=self.ln_f(inputs_embeds))


class FinishEncoder(nn.Module):
    def __init__(self, base: Any) -> None:
        super().__init__()
        self.pooler = base.pooler
        self.activation = getattr(base, "pooler_activation", None)

    def forward(
        self, *_: Any, inputs_embeds: torch.Tensor, **_others: Any
    ) -> BaseModelOutputWithPoolingAndCrossAttentions:
        """``inputs_embeds`` [B, L, D] are the last block's output; ``last_hidden_state`` has their shape."""
        return BaseModelOutputWithPoolingAndCrossAttentions(
            last_hidden_state=inputs_embeds, pooler_output=self._pooled(inputs_embeds)
        )

    def _pooled(self, hidden: torch.Tensor) -> torch.Tensor | None:
        """Takes ``hidden`` [B, L, D] and returns [B, D]; None for a model without a pooler."""
        if self.pooler is None:
            return None
        if self.activation is None:
            return self.pooler(hidden)  # type: ignore[no-any-return]
        return self.activation(self.pooler(hidden[:, 0]))  # type: ignore[no-any-return]


def _decoder(model: PreTrainedModel) -> Family:
    base: Any = model.base_model

    def arguments(hidden: torch.Tensor, attention_mask: torch.Tensor | None) -> dict[str, Any]:
        """Takes ``hidden`` [B, L, D], ``attention_mask`` [B, L]. Gives mask [B, 1, L, L] or None, positions [1, L]."""
        positions = _positions(hidden)
        mask = create_causal_mask(
            config=base.config,
            inputs_embeds=hidden,
            attention_mask=attention_mask,
            past_key_values=None,
            position_ids=positions,
        )
        return {"attention_mask": mask, "position_ids": positions}

    return Family(
        embed=EmbedWithPositions(base), blocks=list(base.h), block_arguments=arguments, finish=FinishDecoder(base)
    )


def _encoder(model: PreTrainedModel, blocks: list[nn.Module]) -> Family:
    base: Any = model.base_model

    def arguments(hidden: torch.Tensor, attention_mask: torch.Tensor | None) -> dict[str, Any]:
        """Takes ``hidden`` [B, L, D] and ``attention_mask`` [B, L]. Gives blocks a mask [B, 1, L, L] or None."""
        mask = create_bidirectional_mask(config=base.config, inputs_embeds=hidden, attention_mask=attention_mask)
        return {"attention_mask": mask}

    return Family(embed=EmbedWithTypes(base), blocks=blocks, block_arguments=arguments, finish=FinishEncoder(base))


def _bert(model: PreTrainedModel) -> Family:
    base: Any = model.base_model
    return _encoder(model, list(base.encoder.layer))


def _albert(model: PreTrainedModel) -> Family:
    base: Any = model.base_model
    layers, groups = model.config.num_hidden_layers, model.config.num_hidden_groups
    return _encoder(model, [base.encoder.albert_layer_groups[layer * groups // layers] for layer in range(layers)])


FAMILIES: Mapping[str, Callable[[PreTrainedModel], Family]] = {
    "gpt2": _decoder,
    "gptj": _decoder,
    "bert": _bert,
    "albert": _albert,
}


def family_of(model: PreTrainedModel) -> Family:
    kind = model.config.model_type
    if kind not in FAMILIES:
        raise WorkloadError(
            f"strategy pipeline can't split model type {kind} into stages; expected one of {', '.join(FAMILIES)}"
        )
    return FAMILIES[kind](model)


def _positions(tokens_or_hidden: torch.Tensor) -> torch.Tensor:
    """Takes ``tokens_or_hidden`` [B, L] or [B, L, D] and returns [1, L]."""
    return torch.arange(tokens_or_hidden.shape[1], device=tokens_or_hidden.device).unsqueeze(0)
