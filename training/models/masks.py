"""Attention masks: transformers makes them, and makes none where PyTorch's kernels know the pattern by themselves.

Which tokens a token attends to is transformers' own decision: sliding windows, chunks, padding. What changes here is
how it finds that no mask is needed. By itself, it reads the positions of every batch, which waits for the device, and
makes a mask whenever the model is compiled. It then can't use the fastest kernels.
"""

from typing import Any

import torch
from transformers import AttentionMaskInterface, masking_utils
from transformers.masking_utils import sdpa_mask

_separate_documents = masking_utils.find_packed_sequence_indices


def set_document_masking(is_on: bool) -> None:
    """With it, tokens attend within their document only; a document begins where positions start again."""
    find: Any = _separate_documents if is_on else _one_document
    masking_utils.find_packed_sequence_indices = find


def _one_document(position_ids: torch.Tensor) -> torch.Tensor | None:
    """Takes ``position_ids`` [B, L], which count up along each row."""
    return None


def _mask_if_needed(
    *,
    q_length: int,
    kv_length: int,
    attention_mask: torch.Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    **others: Any,
) -> torch.Tensor | None:
    """Takes ``attention_mask`` [B, L]. Returns [B, 1, L, L], or None if the whole row is attended to, or all before."""
    can_skip = allow_is_causal_skip or allow_is_bidirectional_skip
    is_whole = attention_mask is None and q_length == kv_length and (local_size is None or kv_length < local_size)
    if can_skip and is_whole:
        return None
    made: torch.Tensor | None = sdpa_mask(
        q_length=q_length,
        kv_length=kv_length,
        attention_mask=attention_mask,
        local_size=local_size,
        allow_is_causal_skip=allow_is_causal_skip,
        allow_is_bidirectional_skip=allow_is_bidirectional_skip,
        **others,
    )
    return made


AttentionMaskInterface.register("sdpa", _mask_if_needed)
set_document_masking(False)
