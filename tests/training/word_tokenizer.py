"""A tokenizer that makes a token of each word."""

from collections.abc import Iterable

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast


def word_tokenizer(words: Iterable[str], **special: str) -> PreTrainedTokenizerFast:
    """The words' tokens are their places. Others are the first word's, or that of ``unk_token``."""
    numbers = {word: number for number, word in enumerate(words)}
    unknown = special.setdefault("unk_token", next(iter(numbers)))
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
