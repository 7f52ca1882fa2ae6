"""Sentences that tests compare with text files, one for each module of tests.

`TRAINDYNO_WRITE_SENTENCES=1 pytest <files>` writes the sections of the tests that run, and
`git diff tests/data/sentences` shows what changed.
"""

import difflib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

TESTS = Path(__file__).parent
FOLDER = TESTS / "data" / "sentences"
HEADING = "# "
IS_WRITTEN = "TRAINDYNO_WRITE_SENTENCES"

# Takes the sentences that a test looks at, single ones or several at once.
Snapshot = Callable[..., None]


def flattened(texts: Iterable[str | Iterable[str]]) -> list[str]:
    return [
        sentence for text in texts for sentence in ([text] if isinstance(text, str) else [*text])
    ]


def parse_sections(text: str) -> dict[str, str]:
    """The sentences of each section, by its heading."""
    sections = ("\n" + text).split("\n" + HEADING)[1:]
    return {heading: body for heading, _, body in (part.partition("\n") for part in sections)}


def body_of(sentences: list[str]) -> str:
    """A line for each line of a sentence, indented, so that none looks like a heading."""
    return "".join(
        f"{'- ' if index == 0 else '  '}{line}".rstrip() + "\n"
        for sentence in sentences
        for index, line in enumerate(sentence.split("\n"))
    )


def compare_sentences(module: Path, test: str, sentences: list[str]) -> str:
    """The difference from what the file of the module holds for this test; empty without one."""
    path = FOLDER / module.relative_to(TESTS).with_suffix(".txt")
    sections = parse_sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    body = body_of(sentences)
    if os.environ.get(IS_WRITTEN):
        sections[test] = body
        lines = [f"{HEADING}{name}\n{sections[name].strip()}\n" for name in sorted(sections)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")
        return ""
    stored = sections.get(test, "- (no section)").strip().splitlines()
    told = body.strip().splitlines()
    return "\n".join(difflib.unified_diff(stored, told, f"{path.name}: {test}", "told now", n=1))
