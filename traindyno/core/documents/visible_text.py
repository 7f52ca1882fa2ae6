"""Text of suites, logs and services, made safe to show: a terminal or a browser obeys some characters."""

import unicodedata

# Control and format characters, lone surrogates, and the separators that end a line as \n does.
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Some languages and emoji need the last two, the joiners.
KEPT = {"\n", "\t", "\u200c", "\u200d"}


def visible(text: str) -> str:
    """The text with an escape, such as ``\\x1b`` or ``\\u202e``, in place of each character that would be obeyed."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(letter: str) -> str:
    if letter in KEPT or unicodedata.category(letter) not in OBEYED:
        return letter
    return letter.encode("unicode_escape").decode("ascii")
