"""Writes the trained model so that transformers loads it again, whatever the strategy was."""

from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase


def save_model(
    state: dict[str, torch.Tensor], model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, folder: Path
) -> None:
    """``model`` is a fresh one: the trained one may be cut, wrapped or rewritten by its strategy."""
    model.load_state_dict(state, assign=True)
    model.tie_weights()
    model.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
