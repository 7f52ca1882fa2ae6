"""What batching has to know of a vocabulary."""

from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    vocabulary_size: int
    pad: int
    mask: int | None


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
    pad = tokenizer.pad_token_id
    return SpecialTokens(vocabulary_size=len(tokenizer), pad=0 if pad is None else pad, mask=tokenizer.mask_token_id)
