"""Reads a data file's content as UTF-8 text, a part at a time: unpacked, decoded by its byte order
mark, checked.
"""

import bz2
import gzip
import io
import itertools
import lzma
import re
from codecs import (
    BOM_UTF8,
    BOM_UTF16_BE,
    BOM_UTF16_LE,
    BOM_UTF32_BE,
    BOM_UTF32_LE,
    getincrementaldecoder,
)
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from traindyno.core.run.data_formats import READABLE
from training.data.files import DataFile
from training.errors import WorkloadError

UNPACK: Mapping[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda packed: gzip.GzipFile(fileobj=packed),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
#: The first bytes of a file whose name says something else → what it is, and what would be
#: accepted.
OTHER_FORMATS = {
    b"\x1f\x8b": "is packed by gzip: name it {name}.gz",
    b"BZh": "is packed by bzip2: name it {name}.bz2",
    b"\xfd7zXZ\0": "is packed by xz: name it {name}.xz",
    b"PAR1": "is a Parquet file: name it {stem}.parquet",
    b"ARROW1": "is an Arrow file: name it {stem}.arrow",
    b"PK\x03\x04": "is a zip archive, as .xlsx files are: unpack it, or save it as .csv",
    b"\xd0\xcf\x11\xe0": (
        "is an old spreadsheet or document: save it as .csv or text, as is expected"
    ),
    b"\x28\xb5\x2f\xfd": "is packed by zstd: unpack it",
}
CHUNK_BYTES = 2**20
MARK = "\ufeff"
PIECE_CHARACTERS = 2**18
LINE_END = re.compile(r"\n(?=\S)")
WORD_END = re.compile(r"(?=\s\S)")
SHOWN_BYTES = 20
# Limits as for archives: a small file that becomes very large would fill the memory, or run for
# hours.
ALWAYS_UNPACKED_BYTES = 512 * 2**20
UNPACKED_PER_PACKED = 100
# A line is held whole; a list of objects may be one.
LONGEST_LINE_CHARACTERS = 2**28


def _chunks(file: DataFile) -> Iterator[bytes]:
    """Yields the file's bytes, unpacked if it is compressed (.gz, .bz2, .xz).

    Raises WorkloadError if it is damaged, or becomes too large.
    """
    suffix = next((suffix for suffix in UNPACK if file.name.lower().endswith(suffix)), "")
    plain = file.name[: len(file.name) - len(suffix)]
    try:
        with file.open() as opened:
            content = UNPACK[suffix](opened) if suffix else opened
            unpacked_bytes = 0
            while chunk := content.read(CHUNK_BYTES):
                unpacked_bytes += len(chunk)
                if suffix:
                    _refuse_large(file.name, opened.tell(), unpacked_bytes)
                yield chunk
    except (OSError, EOFError, lzma.LZMAError) as error:
        with file.open() as opened:
            kind = _other_format(opened.read(CHUNK_BYTES), plain) or ""
        is_other = kind and not kind.endswith(f" {file.name}")
        expected = (
            f"expected a whole file with the suffix of what it is: {plain} if it is not packed"
        )
        why = f"it {kind}" if is_other else f"{error}; {expected}"
        raise WorkloadError(f"{file.name} can't be unpacked: {why}") from error


def _refuse_large(name: str, packed_bytes: int, unpacked_bytes: int) -> None:
    """Refuses a file that becomes very large, by the bytes that were read of it and unpacked."""
    if unpacked_bytes > max(ALWAYS_UNPACKED_BYTES, UNPACKED_PER_PACKED * packed_bytes):
        raise WorkloadError(
            f"{name}: {packed_bytes / 2**20:.1f} MiB of it become {unpacked_bytes / 2**20:.0f} MiB "
            f"or more; expected at most {ALWAYS_UNPACKED_BYTES // 2**20} MiB, or "
            f"{UNPACKED_PER_PACKED} times the packed size if that is more: unpack the file if it "
            "is meant"
        )


def _other_format(begin: bytes, name: str) -> str | None:
    """The other format of a file that begins so, and how it would be accepted; None for text."""
    reason = next((text for magic, text in OTHER_FORMATS.items() if begin.startswith(magic)), None)
    return reason and reason.format(name=name, stem=name.rpartition(".")[0])


def read_texts(file: DataFile) -> Iterator[str]:
    """Yields the text in parts.

    UTF-16 is recognised by its byte order mark; a line that is not text is refused.
    """
    chunks = _chunks(file)
    begin = next(chunks, b"")
    if begin.startswith((BOM_UTF32_LE, BOM_UTF32_BE)):
        raise WorkloadError(f"{file.name} is UTF-32; expected {_accepted(file, 'utf-32')}")
    kind = _other_format(begin, file.name)
    if kind is not None:
        is_twice = kind.startswith("is packed") and file.name.lower().endswith(tuple(UNPACK))
        raise WorkloadError(
            f"{file.name} {'is packed twice: unpack it once' if is_twice else kind}"
        )
    is_wide = begin.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    decoder = getincrementaldecoder("utf-16" if is_wide else "utf-8")()
    lines = 0
    last = ""
    for chunk in itertools.chain([begin.removeprefix(BOM_UTF8)], chunks, [b""]):
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line = lines + error.object.count(b"\n", 0, error.start) + 1
            if not is_wide and b"\0" in error.object:
                raise _not_text(file, line) from error
            undecoded = error.object[
                max(0, error.start - SHOWN_BYTES // 2) : error.start + SHOWN_BYTES // 2
            ]
            encoding = "UTF-16" if is_wide else "UTF-8"
            raise WorkloadError(
                f"{file.name}, line {line}: {undecoded!r} is not {encoding}; expected "
                f"{_accepted(file, 'latin1')}"
            ) from error
        if "\0" in text:
            raise _not_text(file, lines + text.count("\n", 0, text.index("\0")) + 1)
        place = (last + text).find(f"\n{MARK}") if MARK in text else -1
        if place >= 0:
            line = lines + (last + text).count("\n", 0, place) + 2 - last.count("\n")
            raise WorkloadError(
                f"{file.name}, line {line}: a byte order mark begins the line, as where a second "
                "file was joined to the first; expected each file by itself"
            )
        lines += text.count("\n")
        last = text[-1:] or last
        yield text


def _not_text(file: DataFile, line: int) -> WorkloadError:
    return WorkloadError(
        f"{file.name} holds NUL bytes in line {line}, so it is not text; readable are {READABLE}"
    )


def _accepted(file: DataFile, encoding: str) -> str:
    return (
        "UTF-8, or UTF-16 with a byte order mark (convert other encodings first, for example: "
        f"iconv -f {encoding} -t utf-8 {file.name})"
    )


def text_pieces(file: DataFile) -> Iterator[str]:
    """Yields the file's text in pieces that begin with a line, or before a blank where lines are
    long.
    """
    held = ""
    for text in read_texts(file):
        held += text
        while len(held) > 2 * PIECE_CHARACTERS:
            boundary = LINE_END.search(held, PIECE_CHARACTERS) or WORD_END.search(
                held, PIECE_CHARACTERS
            )
            end = boundary.end() if boundary else PIECE_CHARACTERS
            yield held[:end]
            held = held[end:]
    if held:
        yield held


def text_lines(file: DataFile) -> Iterator[str]:
    """Yields the file's lines with their ends.

    Raises WorkloadError for one that is too long to be held.
    """
    held: list[str] = []
    number = 1
    characters = 0
    for text in read_texts(file):
        for part in io.StringIO(text, newline=""):
            if held and held[-1].endswith(("\n", "\r")) and (held[-1][-1], part) != ("\r", "\n"):
                yield "".join(held)
                held.clear()
                number += 1
                characters = 0
            held.append(part)
            characters += len(part)
            if characters > LONGEST_LINE_CHARACTERS:
                raise WorkloadError(
                    f"{file.name}, line {number}: it is longer than "
                    f"{LONGEST_LINE_CHARACTERS:,} characters; expected a row on each line"
                )
    if held:
        yield "".join(held)
