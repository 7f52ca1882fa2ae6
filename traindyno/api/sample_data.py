"""Samples of data that every machine has: Python's standard library, as text and as lines with
labels.
"""

import csv
import random
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path

SCHEME = "sample:"
TEXT_SAMPLE = f"{SCHEME}python-standard-library"
LABELLED_SAMPLE = f"{SCHEME}comments-and-code"
SAMPLES = (TEXT_SAMPLE, LABELLED_SAMPLE)
SIZE_LIMIT_BYTES = 2**20
LABELLED_LINES = {"train": 4000, "test": 800}
LEAST_CHARACTERS = 20  # shorter lines contain too little text
MOST_OF_A_FILE = (
    50  # lines of each kind: many files are read, so that a part of a split is similar to the whole
)
COMMENT = 0
CODE = 1
# They follow the library's modules, which hold too few comments in Python 3.13.
PACKAGES = ("asyncio", "email", "http", "importlib", "logging", "multiprocessing", "unittest")


def is_sample(path: str) -> bool:
    return path.startswith(SCHEME)


def why_no_sample(path: str) -> str | None:
    return None if path in SAMPLES else f"{path!r} is not a sample; accepted: {', '.join(SAMPLES)}"


def write_sample(path: str, folder: Path) -> Path:
    """Create the folder and write the files of one of ``SAMPLES`` into it; the same machine gives
    the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    writers = {TEXT_SAMPLE: _write_text, LABELLED_SAMPLE: _write_labelled_lines}
    writers[path](folder)
    return folder


def _write_text(folder: Path) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    text = bytearray()
    for path in [library / "pydoc_data" / "topics.py", *_sources()]:
        if path.is_file() and len(text) < SIZE_LIMIT_BYTES:
            text += path.read_bytes() + b"\n"
    (folder / "text.txt").write_bytes(bytes(text))


def _write_labelled_lines(folder: Path) -> None:
    """Comments and lines of code in turn, from files of the library that differ between the two
    splits.
    """
    sources = _sources()
    for number, (split, count) in enumerate(LABELLED_LINES.items()):
        comments: list[str] = []
        code: list[str] = []
        for path in sources[number :: len(LABELLED_LINES)]:
            if min(len(comments), len(code)) < count // 2:
                pieces = list(labelled_lines(path))
                comments += [content for content, label in pieces if label == COMMENT][
                    :MOST_OF_A_FILE
                ]
                code += [content for content, label in pieces if label == CODE][:MOST_OF_A_FILE]
        pairs = list(zip(comments, code, strict=False))[: count // 2]
        random.Random(number).shuffle(pairs)
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["content", "label"])
            for comment, line in pairs:
                rows.writerows([(comment, COMMENT), (line, CODE)])


def labelled_lines(path: Path) -> Iterator[tuple[str, int]]:
    """Comments that fill a line, without their mark, and lines of code; lines of strings are
    neither.
    """
    with tokenize.open(path) as file:
        lines = file.read().splitlines()
    in_strings: set[int] = set()
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            fills_line = not token.line[: token.start[1]].strip()
            if token.type == tokenize.STRING and (fills_line or token.end[0] > token.start[0]):
                in_strings |= set(range(token.start[0], token.end[0] + 1))
    for number, line in enumerate(lines, start=1):
        content = line.strip()
        is_comment = content.startswith("#")
        content = content.lstrip("#! ").strip() if is_comment else content
        if len(content) >= LEAST_CHARACTERS and number not in in_strings:
            yield content, COMMENT if is_comment else CODE


def _sources() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    packaged = (path for package in PACKAGES for path in sorted((library / package).glob("*.py")))
    return [
        path for path in [*sorted(library.glob("*.py")), *packaged] if not path.name.startswith("_")
    ]
