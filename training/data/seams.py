"""Tokenises a long text a piece at a time: the tokens are those of the whole text in one call.

A tokenizer treats the ends of its text in its own way: a space is put before it, and blanks at the end are one token. A
word that is cut has other tokens. So consecutive pieces share some text, and the tokens of one continue the other's in
the midst of it, at a character with which a token begins in both. What merges characters (BPE) or weighs paths
(Unigram) has the same tokens on each side of such a place as in the whole text.
"""

from dataclasses import dataclass

from transformers import BatchEncoding, PreTrainedTokenizerBase

# Characters before and behind a seam that both pieces share.
CONTEXT_CHARACTERS = 2048
# Where no seam is found, as in an endless row of blanks, pieces are joined up to this size; then the text is cut.
MOST_CHARACTERS = 2**21


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """``first`` is the first of its tokens that were not given yet."""

    text: str
    encoded: BatchEncoding
    first: int = 0

    @property
    def tokens(self) -> list[int]:
        tokens: list[int] = self.encoded["input_ids"]
        return tokens

    def token_at(self, character: int) -> int | None:
        """The first token that begins with this character; None if none does, or if an earlier one has a part of it."""
        found = self.encoded.char_to_token(character)
        span = None if found is None else self.encoded.token_to_chars(found)
        return found if span is not None and span.start == character else None


class PieceTokenizer:
    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._held: _Piece | None = None

    def add(self, text: str, *, is_last: bool) -> list[int]:
        """The text's further tokens as far as they are certain: all of them with its last piece."""
        before, self._held = self._held, None
        given, held = ([], self._encode(text)) if before is None else self._continue(before, text)
        if is_last:
            return given + held.tokens[held.first :]
        self._held = held
        return given

    def _continue(self, before: _Piece, text: str) -> tuple[list[int], _Piece]:
        shared = before.text[-2 * CONTEXT_CHARACTERS :] if self._tokenizer.is_fast else ""
        after = self._encode(shared + text)
        seam = _seam(before, after, len(shared))
        if seam is not None:
            end, first = seam
            return before.tokens[before.first : end], _Piece(text=after.text, encoded=after.encoded, first=first)
        if self._tokenizer.is_fast and len(before.text) + len(text) <= MOST_CHARACTERS:
            whole = self._encode(before.text + text)
            return [], _Piece(text=whole.text, encoded=whole.encoded, first=before.first)
        return before.tokens[before.first :], self._encode(text)

    def _encode(self, text: str) -> _Piece:
        return _Piece(text=text, encoded=self._tokenizer(text, add_special_tokens=False, verbose=False))


def _seam(before: _Piece, after: _Piece, shared: int) -> tuple[int, int] | None:
    """Where ``after`` continues ``before``: the end of the one's tokens and the first of the other's.

    ``after`` begins with the last ``shared`` characters of ``before``. The seam is in their middle half.
    """
    if shared < 2 * CONTEXT_CHARACTERS:
        return None
    begin = len(before.text) - shared
    for place in range(CONTEXT_CHARACTERS // 2, CONTEXT_CHARACTERS // 2 * 3):
        end, first = before.token_at(begin + place), after.token_at(place)
        if end is not None and first is not None and end >= before.first:
            return end, first
    return None
