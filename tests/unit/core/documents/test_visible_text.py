"""What a terminal or a browser would obey is shown as an escape."""

import random
import re
import unicodedata

import pytest

from traindyno.core.documents.problems import visible

# C0 but tab and newline, DEL and C1; marks of direction; lone surrogates; other ends of lines; an
# invisible tag.
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0001]"
)
LETTERS = [
    chr(code)
    for code in (*range(0x300), *range(0x2000, 0x2080), *range(0xD7F0, 0xE010), 0x1F600, 0xE0001)
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("50%\r100%\x7f\x9b", r"50%\r100%\x7f\x9b"),
        ("\u202eexe.\u2069\ud800", r"\u202eexe.\u2069\ud800"),
        ("[/INST] [bold]x[/bold] :smile: C:\\x1b", "[/INST] [bold]x[/bold] :smile: C:\\x1b"),
        ("batch 4 × ±2 %, é, 測定, 👩\u200d🔬, ka\u200cṣa\n\tnext line", None),
    ],
)
def test_only_obeyed_characters_become_an_escape(text: str, shown: str | None) -> None:
    assert visible(text) == (text if shown is None else shown)


def test_no_text_keeps_an_obeyed_character_and_no_other_is_lost() -> None:
    dice = random.Random(25)
    for _ in range(2_000):
        text = "".join(dice.choices(LETTERS, k=dice.randrange(12)))
        shown = visible(text)
        assert OBEYED.search(shown) is None
        assert visible(shown) == shown
        shown.encode("utf-8")
        position = 0
        for letter in (
            character
            for character in text
            if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        ):
            position = shown.index(letter, position) + 1
