"""A text that is tokenised in pieces has the tokens of the whole text, whatever the tokenizer does at a text's ends."""

import json
import pydoc_data
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from training.data import encoding

TEXT = Path(pydoc_data.__path__[0], "topics.py").read_text(encoding="utf-8")[:60_000]


def fast(model: Any, trainer: Any, *, before: Any = None, normalizer: Any = None) -> PreTrainedTokenizerFast:
    made = Tokenizer(model)
    made.pre_tokenizer = before
    made.normalizer = normalizer
    made.train_from_iterator([TEXT], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made)


def bpe_of_one_word() -> PreTrainedTokenizerFast:
    """As Llama 2 has it: the whole text is one word, with a mark for a space before it."""
    learned = fast(
        models.BPE(unk_token="<unk>"),
        trainers.BpeTrainer(vocab_size=1000, special_tokens=["<unk>"], show_progress=False),
        before=pre_tokenizers.Metaspace(),
    )
    made = learned.backend_tokenizer
    described = json.loads(made.to_str())
    prepend = {"type": "Prepend", "prepend": "\u2581"}
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    described |= {"pre_tokenizer": None, "normalizer": {"type": "Sequence", "normalizers": [prepend, mark]}}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(described)))


KINDS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "byte-level BPE": lambda: fast(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=1000, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
        ),
        before=pre_tokenizers.ByteLevel(add_prefix_space=False),
    ),
    "BPE without words": bpe_of_one_word,
    "WordPiece": lambda: fast(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(vocab_size=1000, special_tokens=["[UNK]"], show_progress=False),
        before=pre_tokenizers.BertPreTokenizer(),
        normalizer=normalizers.BertNormalizer(),
    ),
    "Unigram": lambda: fast(
        models.Unigram(),
        trainers.UnigramTrainer(vocab_size=1000, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False),
        before=pre_tokenizers.Metaspace(),
        normalizer=normalizers.NFKC(),
    ),
}


def soup(seed: int) -> str:
    parts = [
        "word",
        "a",
        " ",
        "   ",
        "\n",
        "\n\n",
        "\t",
        "größe",
        "1234567",
        "...",
        " \n",
        "\r\n",
        "日本語",
        "'s",
        "\u0301",
    ]
    chance = random.Random(seed)
    return "".join(chance.choice(parts) for _ in range(8000))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_tokens_of_pieces_are_those_of_the_whole_text(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a piece begins and ends with: pieces are cut at random, also within words and blanks."""
    monkeypatch.setattr(encoding, "CONTEXT_CHARACTERS", 128)
    tokenizer = KINDS[kind]()
    dna = "".join(random.Random(3).choice("ACGT") for _ in range(20_000))
    for number, text in enumerate((TEXT, soup(1), soup(2), dna, "one " * 500 + " " * 5000 + "two " * 500)):
        for mean, size in ((4, 2000), (150, 10**6), (1000, 10**6)):
            shown = text[:size]
            whole = tokenizer(shown, add_special_tokens=False, verbose=False)["input_ids"]
            chance, found, begin = random.Random(number), list[int](), 0
            pieces = encoding.PieceTokenizer(tokenizer)
            while begin < len(shown):
                end = begin + chance.randint(1, 2 * mean)
                found += pieces.add(shown[begin:end], is_last=end >= len(shown))
                begin = end
            assert found == whole, (number, mean)


def test_a_tokenizer_without_the_places_of_its_tokens_gets_each_piece_alone() -> None:
    slow = ByT5Tokenizer()
    assert not slow.is_fast
    pieces = encoding.PieceTokenizer(slow)
    found = [pieces.add(text, is_last=text == "three") for text in ("one ", "two\n", "three")]
    assert [token for tokens in found for token in tokens] == slow("one two\nthree", add_special_tokens=False)[
        "input_ids"
    ]


def test_a_text_without_a_seam_is_cut_where_it_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "CONTEXT_CHARACTERS", 16)
    monkeypatch.setattr(encoding, "MOST_CHARACTERS", 1000)
    pieces = encoding.PieceTokenizer(KINDS["WordPiece"]())
    found = [pieces.add("a" * 300, is_last=number == 9) for number in range(10)]
    assert [len(tokens) for tokens in found] == [0, 0, 0, 1, 0, 0, 1, 0, 0, 2]
