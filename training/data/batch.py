"""A batch: named tensors whose first dimension is the sample."""

import torch

Batch = dict[str, torch.Tensor]


def sample_count(batch: Batch) -> int:
    return len(batch["labels"])


def token_count(batch: Batch) -> int:
    """Tokens without padding."""
    mask = batch.get("attention_mask")
    return batch["input_ids"].numel() if mask is None else int(mask.sum())
