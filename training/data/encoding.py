"""Rows of text to token sequences: packed end to end for language models, or one per row."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from transformers import PreTrainedTokenizerBase

from traindyno.core.suite.suite import Task
from training.data.labels import LabelCodes
from training.data.rows import Rows

Tokens = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    tokens: Tokens
    label: int | None = None


def encode(
    rows: Iterator[Rows],
    tokenizer: PreTrainedTokenizerBase,
    *,
    task: Task,
    sequence_length: int,
    packing: bool,
    codes: LabelCodes,
) -> Iterator[Encoded]:
    if task is Task.SEQUENCE_CLASSIFICATION:
        yield from _labelled(rows, tokenizer, sequence_length, codes)
    elif packing:
        yield from _packed(_documents(rows, tokenizer), tokenizer, task, sequence_length)
    else:
        for document in _documents(rows, tokenizer):
            yield Encoded(tokens=_framed(document[: _room(tokenizer, task, sequence_length)], tokenizer, task))


def _labelled(
    rows: Iterator[Rows], tokenizer: PreTrainedTokenizerBase, sequence_length: int, codes: LabelCodes
) -> Iterator[Encoded]:
    for batch in rows:
        encoded = tokenizer(batch.texts, truncation=True, max_length=sequence_length)["input_ids"]
        for tokens, label in zip(encoded, batch.labels or [], strict=True):
            yield Encoded(tokens=np.asarray(tokens, dtype=np.int64), label=codes.code(label))


def _documents(rows: Iterator[Rows], tokenizer: PreTrainedTokenizerBase) -> Iterator[Tokens]:
    for batch in rows:
        texts = [text for text in batch.texts if text]
        if texts:
            for tokens in tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]:
                yield np.asarray(tokens, dtype=np.int64)


def _packed(
    documents: Iterator[Tokens], tokenizer: PreTrainedTokenizerBase, task: Task, sequence_length: int
) -> Iterator[Encoded]:
    """Blocks of one length without padding; documents are parted by the end token, a rest at the end is dropped."""
    room = _room(tokenizer, task, sequence_length)
    end = np.asarray([token for token in [_end_token(tokenizer)] if token is not None], dtype=np.int64)
    rest = np.zeros(0, dtype=np.int64)
    for document in documents:
        rest = np.concatenate([rest, document, end])
        whole = len(rest) // room * room
        for block in rest[:whole].reshape(-1, room):
            yield Encoded(tokens=_framed(block, tokenizer, task))
        rest = rest[whole:]


def _end_token(tokenizer: PreTrainedTokenizerBase) -> int | None:
    token: int | None = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    return token


def _room(tokenizer: PreTrainedTokenizerBase, task: Task, sequence_length: int) -> int:
    """Tokens of text that fit beside the frame of ``_framed``."""
    return sequence_length - 2 if _is_framed(tokenizer, task) else sequence_length


def _is_framed(tokenizer: PreTrainedTokenizerBase, task: Task) -> bool:
    has_frame = tokenizer.cls_token_id is not None and tokenizer.sep_token_id is not None
    return task is Task.MASKED_LM and has_frame


def _framed(tokens: Tokens, tokenizer: PreTrainedTokenizerBase, task: Task) -> Tokens:
    """Masked language models see [CLS] … [SEP]."""
    if not _is_framed(tokenizer, task):
        return tokens
    return np.concatenate([[tokenizer.cls_token_id], tokens, [tokenizer.sep_token_id]])
