"""Turns conversations into token sequences with a mask of the tokens that count in the loss, packed
whole or one per conversation.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from transformers import BatchEncoding, PreTrainedTokenizerBase

from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import LossOn, Task, TooLong
from training.data.batch import Array, Mask
from training.data.chat_template import Rendered, Templates, common
from training.data.checked_rows import refuse_half_characters
from training.data.conversations import Chat, PromptedText
from training.data.encoding import Encoded, Encoder
from training.errors import WorkloadError

CHATS_PER_BATCH = 200
#: Conversations of other lengths may still fit into one of these.
OPEN_SEQUENCES = 64

# Tokens [L], and a mask [L] that is true for the tokens that count in the loss
Tokenised = tuple[Array, Mask]


class ChatEncoder:
    """Turns conversations into sequences of at most ``sequence_length`` tokens.

    It counts all ``conversations``, the ``too_long`` ones, and the ``left_out`` ones, which have no
    token that counts in the loss; ``example`` is the place of one of these. ``sources`` has the
    names of the files that were read.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        dataset: Dataset,
        *,
        sequence_length: int,
        packing: bool,
    ) -> None:
        if not tokenizer.is_fast:
            raise WorkloadError(
                "the tokenizer gives no places of its tokens in a text, by which the answers of a "
                "conversation are found; expected one with a tokenizer.json"
            )
        self._tokenizer = tokenizer
        self._length = sequence_length
        self._packing = packing
        self._leaves_out_long = dataset.too_long is TooLong.LEAVE_OUT
        self._counts_all = dataset.loss_on is LossOn.ALL
        self._templates = Templates(
            tokenizer, arguments=dataset.chat_template_kwargs, loss_on=dataset.loss_on
        )
        self._texts = Encoder(
            tokenizer, task=Task.CAUSAL_LM, sequence_length=sequence_length, packing=False
        )
        self.conversations = 0
        self.left_out = 0
        self.too_long = 0
        self.example = ""
        self.sources: dict[str, None] = {}

    def encode(self, rows: Iterator[Chat | PromptedText]) -> Iterator[Encoded]:
        fitting = self._fitting(rows)
        if self._packing:
            yield from _packed(fitting, self._length)
            return
        for tokens, loss_mask in fitting:
            yield Encoded(tokens=tokens, loss_mask=loss_mask)

    def summary(self) -> str:
        """What became of conversations that are in no sequence, or not whole; empty if all are."""
        text = ""
        if self.too_long:
            what = "left out" if self._leaves_out_long else "cut"
            text = (
                f"; conversations of more than {self._length:,} tokens: {self.too_long:,} of "
                f"{self.conversations:,} ({what})"
            )
        if self.left_out:
            counted = f"{self.left_out:,} (such as {self.example})"
            text += f"; left out because no token of an answer is in them: {counted}"
        return text

    def _fitting(self, rows: Iterator[Chat | PromptedText]) -> Iterator[Tokenised]:
        """Each conversation as tokens [L] and a mask [L], without a count of the first token, which
        nothing predicts.
        """
        for row, tokens, loss_mask in self._tokenised(rows):
            self.conversations += 1
            self.sources[row.file] = None
            loss_mask[:1] = False
            kept = slice(None)
            if len(tokens) > self._length:
                self.too_long += 1
                if self._leaves_out_long:
                    continue
                begin = _kept_from(loss_mask, self._length)
                kept = slice(begin, begin + self._length)
                loss_mask[begin] = False
            if loss_mask[kept].any():
                yield tokens[kept], loss_mask[kept]
            else:
                self.left_out += 1
                self.example = self.example or row.place

    def _tokenised(
        self, rows: Iterator[Chat | PromptedText]
    ) -> Iterator[tuple[Chat | PromptedText, Array, Mask]]:
        """Yields each row with its tokens [L] and a mask [L] of the tokens that count."""
        for batch in iter(lambda: list(itertools.islice(rows, CHATS_PER_BATCH)), []):
            chats = [row for row in batch if isinstance(row, Chat)]
            texts = [row for row in batch if isinstance(row, PromptedText)]
            of_chats = self._of_chats(chats)
            of_texts = self._of_texts(texts)
            for row in batch:
                yield row, *next(of_chats if isinstance(row, Chat) else of_texts)

    def _of_chats(self, chats: Sequence[Chat]) -> Iterator[Tokenised]:
        """Yields tokens [L] and a mask [L] for each."""
        rendered = [self._templates.render(chat) for chat in chats]
        for chat, rendering in zip(chats, rendered, strict=True):
            refuse_half_characters(rendering.text, chat.place)
            for name in chat.functions:
                if name not in rendering.text:
                    raise chat.refused(
                        f"the chat template does not write the tool {name!r}; expected a template "
                        "with tools and their calls, or a row without them"
                    )
        if not chats:
            return
        encoding = self._tokenizer(
            [rendering.text for rendering in rendered], add_special_tokens=False, verbose=False
        )
        for place, (chat, rendering) in enumerate(zip(chats, rendered, strict=True)):
            tokens = np.asarray(encoding["input_ids"][place], dtype=np.int64)
            loss_mask = _loss_mask(rendering, encoding, place)
            if chat.prompt_turns is not None and not self._counts_all:
                asked = self._tokenizer(
                    self._templates.render_prompt(chat), add_special_tokens=False, verbose=False
                )
                loss_mask[: common(asked["input_ids"], tokens)] = False
            yield tokens, loss_mask

    def _of_texts(self, rows: Sequence[PromptedText]) -> Iterator[Tokenised]:
        """Yields tokens [L] and a mask [L] for each row.

        The completion has the tokens of both texts that the prompt alone does not have.
        """
        if not rows:
            return
        for row in rows:
            refuse_half_characters(row.prompt + row.completion, row.place)
        whole = self._texts.whole_texts([row.prompt + row.completion for row in rows])
        prompts = self._texts.begun_texts([row.prompt for row in rows])
        for tokens, prompt in zip(whole, prompts, strict=True):
            loss_mask = np.ones(len(tokens), dtype=np.bool_)
            if not self._counts_all:
                loss_mask[: common(prompt, tokens)] = False
            yield np.asarray(tokens, dtype=np.int64), loss_mask


def _loss_mask(rendered: Rendered, encoding: BatchEncoding, place: int) -> Mask:
    """Returns [L], true for tokens with a character of an answer, in the text ``place`` of
    ``encoding``.
    """
    count = len(encoding["input_ids"][place])
    if rendered.answers is None:
        return np.ones(count, dtype=np.bool_)
    loss_mask = np.zeros(count, dtype=np.bool_)
    for begin, end in rendered.answers:
        first = _first_token(encoding, place, range(begin, end))
        last = _first_token(encoding, place, range(end - 1, begin - 1, -1))
        if first is not None and last is not None:
            loss_mask[first : last + 1] = True
    return loss_mask


def _first_token(encoding: BatchEncoding, place: int, characters: range) -> int | None:
    """The token of the first character that has one: some tokenizers have none for a blank."""
    tokens = (encoding.char_to_token(place, character) for character in characters)
    return next((token for token in tokens if token is not None), None)


def _kept_from(loss_mask: Mask, length: int) -> int:
    """Index of the first of ``length`` tokens that are kept of a text with ``loss_mask`` [L].

    At least one of them counts in the loss: they are the first tokens, or they end with the first
    answer, or begin before it if it is longer.
    """
    if loss_mask[:length].any() or not loss_mask.any():
        return 0
    begin = int(loss_mask.argmax())
    uncounted = np.flatnonzero(~loss_mask[begin:])
    end = begin + int(uncounted[0]) if len(uncounted) else len(loss_mask)
    return min(end - length, begin - 1)


def _packed(fitting: Iterator[Tokenised], length: int) -> Iterator[Encoded]:
    """Sequences of at most ``length`` tokens of whole conversations, ``fitting`` as tokens [L] and
    masks [L]: each goes to the fullest one that has room for it.
    """
    sequences: list[list[Tokenised]] = []
    rooms: list[int] = []
    for tokens, loss_mask in fitting:
        fits = [(room, place) for place, room in enumerate(rooms) if room >= len(tokens)]
        if not fits:
            if len(sequences) == OPEN_SEQUENCES:
                fullest = rooms.index(min(rooms))
                yield _joined(sequences.pop(fullest))
                rooms.pop(fullest)
            sequences.append([])
            rooms.append(length)
            fits = [(length, len(rooms) - 1)]
        _, place = min(fits)
        sequences[place].append((tokens, loss_mask))
        rooms[place] -= len(tokens)
    yield from map(_joined, sequences)


def _joined(conversations: Sequence[Tokenised]) -> Encoded:
    """Joins conversations, given as tokens [L] and masks [L], to one sequence."""
    lengths = [len(tokens) for tokens, _ in conversations]
    return Encoded(
        tokens=np.concatenate([tokens for tokens, _ in conversations]),
        documents=np.cumsum([0, *lengths[:-1]]),
        loss_mask=np.concatenate([loss_mask for _, loss_mask in conversations]),
    )
