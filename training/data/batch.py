"""A batch: tensors by name.

The model's inputs are ``input_ids`` [B, L] and, where sequences are padded, ``attention_mask`` [B,
L]. With document masking there are ``position_ids`` [B, L], which begin at 0 in each document.

``labels`` are [B, L], or [B] for sequence classification. ``weight`` [] is there where batches have
different numbers of labels.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]


Batch = dict[str, torch.Tensor]


def sample_count(batch: Batch) -> int:
    return len(batch["labels"])


def token_count(batch: Batch) -> int:
    """Tokens without padding."""
    mask = batch.get("attention_mask")
    return batch["input_ids"].numel() if mask is None else int(mask.sum())
