"""Turns rows of text into token sequences: packed end to end for language models, or one per row.

A text that is read in pieces gets the tokens of its pieces. They begin with a line or before a
blank, where tokenizers that split text into words cut it too. Others can give a token more or less
there: once in 262,144 characters at most.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from traindyno.core.suite.choices import Task
from training.data.batch import Array
from training.data.checked_rows import Rows
from training.data.labels import Labelled, label_of
from training.models.model_config import end_token

# The fewest tokens with something to predict: a causal model's first token is not predicted, and a
# masked model's first and last one ([CLS] and [SEP]) are never masked.
LEAST_TOKENS = {Task.CAUSAL_LM: 2, Task.MASKED_LM: 3, Task.SEQUENCE_CLASSIFICATION: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """One sequence of ``tokens`` [L], without padding."""

    tokens: Array
    label: Labelled | None = None


class Encoder:
    """Turns a dataset's rows into sequences.

    ``left_out`` counts the rows that were too short to train on; ``example`` is the place of one of
    them. ``sources`` has the names of the files that were read.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, *, task: Task, sequence_length: int, packing: bool
    ) -> None:
        self._tokenizer = tokenizer
        self._task = task
        self._is_classified = task is Task.SEQUENCE_CLASSIFICATION
        self._packing = packing and not self._is_classified
        self._options: dict[str, Any] = {"add_special_tokens": False, "verbose": False}
        if self._is_classified:
            self._options = {"truncation": True, "max_length": sequence_length}
        has_frame = tokenizer.cls_token_id is not None and tokenizer.sep_token_id is not None
        self._is_framed = task is Task.MASKED_LM and has_frame
        # The tokens of text that fit beside the frame
        self._room = sequence_length - 2 if self._is_framed else sequence_length
        self.left_out = 0
        self.example = ""
        self.sources: dict[str, None] = {}

    def encode(self, rows: Iterator[Rows]) -> Iterator[Encoded]:
        return self._packed(rows) if self._packing else self._one_per_row(rows)

    def _one_per_row(self, rows: Iterator[Rows]) -> Iterator[Encoded]:
        beginnings = (batch for batch in rows if not batch.continues)
        for document, batch, place in self._documents(beginnings):
            tokens = self._framed(document[: self._room])
            if len(tokens) < LEAST_TOKENS[self._task]:
                self._leave_out(batch, place)
            else:
                yield Encoded(tokens=tokens, label=label_of(batch, place))

    def _packed(self, rows: Iterator[Rows]) -> Iterator[Encoded]:
        """Yields blocks of one length without padding.

        The end token is between documents; a rest is dropped.
        """
        after = end_token(self._tokenizer)
        end = np.asarray([] if after is None else [after], dtype=np.int64)
        rest = np.zeros(0, dtype=np.int64)
        for document, batch, _ in self._documents(rows):
            rest = np.concatenate([rest, document, rest[:0] if batch.goes_on else end])
            whole = len(rest) // self._room * self._room
            for block in rest[:whole].reshape(-1, self._room):
                yield Encoded(tokens=self._framed(block))
            rest = rest[whole:]

    def _documents(self, rows: Iterator[Rows]) -> Iterator[tuple[Array, Rows, int]]:
        """Each text, or piece of one, as tokens [N], with the rows that it is one of and its place
        in them.
        """
        for batch in rows:
            self.sources[batch.file] = None
            kept = []
            for place, text in enumerate(batch.texts):
                if text.strip() if self._is_classified else text:
                    kept.append(place)
                else:
                    self._leave_out(batch, place)
            if kept:
                encoded = self._tokenizer([batch.texts[place] for place in kept], **self._options)[
                    "input_ids"
                ]
                for tokens, place in zip(encoded, kept, strict=True):
                    yield np.asarray(tokens, dtype=np.int64), batch, place

    def _leave_out(self, rows: Rows, place: int) -> None:
        """``place`` is the row's number within ``rows``, from 0."""
        self.left_out += 1
        self.example = self.example or f"{rows.file}, row {rows.first_row + place}"

    def _framed(self, tokens: Array) -> Array:
        """Returns [L], the ``tokens`` [N] as the model sees them: for a masked one between [CLS]
        and [SEP].
        """
        if not self._is_framed:
            return tokens
        return np.concatenate(
            [[self._tokenizer.cls_token_id], tokens, [self._tokenizer.sep_token_id]]
        )
