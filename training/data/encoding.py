"""Turns rows of text into token sequences: packed end to end for language models, or one per row.

A causal language model reads a text as the tokenizer gives it, with one end token behind it.

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
from training.data.batch import Array, Mask
from training.data.checked_rows import Rows
from training.data.labels import Labelled, label_of
from training.inference import Frame, begun_texts, frame_of
from training.models.model_config import end_token

# The fewest tokens with something to predict: a causal model's first token is not predicted, and a
# masked model's first and last one ([CLS] and [SEP]) are never masked.
LEAST_TOKENS = {Task.CAUSAL_LM: 2, Task.MASKED_LM: 3, Task.SEQUENCE_CLASSIFICATION: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """One sequence of tokens, without padding."""

    #: [L]
    tokens: Array
    #: [D], the places where a text begins, if the sequence is packed.
    documents: Array | None = None
    #: [L], true for the tokens that count in the loss; None if all of them do.
    loss_mask: Mask | None = None
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
        self._is_causal = task is Task.CAUSAL_LM
        self._frame = frame_of(tokenizer) if self._is_causal else Frame(0, [])
        end = end_token(tokenizer)
        behind = self._frame.behind
        # The tokens behind a text of a causal language model, and between packed texts
        self._end = [*behind, *([] if end is None or behind[-1:] == [end] else [end])]
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
        held = np.zeros(0, dtype=np.int64)
        needed = (batch for batch in rows if not batch.continues or len(held) < self._room)
        for piece, batch, place in self._pieces(needed):
            held = np.concatenate([held, piece]) if batch.continues else piece
            if batch.goes_on and len(held) < self._room:
                continue
            tokens = self._framed(held[: self._room])
            if len(tokens) < LEAST_TOKENS[self._task]:
                self._leave_out(batch, place)
            else:
                yield Encoded(tokens=tokens, label=label_of(batch, place))

    def _packed(self, rows: Iterator[Rows]) -> Iterator[Encoded]:
        """Yields blocks of one length without padding; a rest is dropped."""
        rest = np.zeros(0, dtype=np.int64)
        begins = np.zeros(0, dtype=np.int64)
        for piece, batch, _ in self._pieces(rows):
            if not batch.continues:
                begins = np.append(begins, len(rest))
            rest = np.concatenate([rest, piece])
            while len(rest) >= self._room:
                of_block = begins[begins < self._room]
                documents = of_block if self._is_causal else None
                yield Encoded(tokens=self._framed(rest[: self._room]), documents=documents)
                rest = rest[self._room :]
                begins = begins[len(of_block) :] - self._room

    def _pieces(self, rows: Iterator[Rows]) -> Iterator[tuple[Array, Rows, int]]:
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
                encoded = self._encoded([batch.texts[place] for place in kept], batch)
                for tokens, place in zip(encoded, kept, strict=True):
                    yield np.asarray(tokens, dtype=np.int64), batch, place

    def summary(self) -> str:
        """What became of rows that are in no sequence; empty if there are none."""
        if not self.left_out:
            return ""
        counted = f"{self.left_out:,} (such as {self.example})"
        return f"; rows left out because they are too short to train on: {counted}"

    def whole_texts(self, texts: list[str]) -> list[list[int]]:
        """The tokens of texts of a causal language model, each with one end token."""
        encoded = begun_texts(self._tokenizer, texts, self._frame)
        return [self._ended(tokens, is_empty=False) for tokens in encoded]

    def begun_texts(self, texts: list[str]) -> list[list[int]]:
        """The tokens of texts that go on."""
        return begun_texts(self._tokenizer, texts, self._frame)

    def _encoded(self, texts: list[str], batch: Rows) -> list[list[int]]:
        is_begun = self._is_causal and not batch.continues
        if is_begun:
            encoded = begun_texts(self._tokenizer, texts, self._frame)
        else:
            encoded = self._tokenizer(texts, **self._options)["input_ids"]
        if batch.goes_on or not (self._is_causal or self._packing):
            return encoded
        first = self._frame.before if is_begun else 0
        return [self._ended(tokens, is_empty=len(tokens) == first) for tokens in encoded]

    def _ended(self, tokens: list[int], *, is_empty: bool) -> list[int]:
        """A causal language model's text may have the end token as its own last one.

        A text without a token stays too short to train on.
        """
        is_ended = is_empty or tokens[-1:] == self._end[-1:]
        return tokens if self._is_causal and is_ended else [*tokens, *self._end]

    def _leave_out(self, rows: Rows, place: int) -> None:
        """Counts a row that is left out, by its number within ``rows``, from 0."""
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
