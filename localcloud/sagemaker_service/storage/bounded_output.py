"""How much of the output of a job's host is kept, and the note that stands for the rest."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# Of a host's log file: above the largest size, only its first and its last bytes are kept.
FILE_MOST_BYTES = 64 * 2**20
FILE_FIRST_BYTES = 8 * 2**20
FILE_LAST_BYTES = 16 * 2**20
NOTE = "[traindyno: {lines} lines ({bytes} bytes) of output are left out here]"
NOTE_LINE = re.compile(rb"\[traindyno: (\d+) lines \((\d+) bytes\) of output are left out here\]\n")
READ_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    lines: int
    bytes: int

    def note(self) -> str:
        return NOTE.format(lines=self.lines, bytes=self.bytes)


def count_output(path: Path, begin: int, end: int) -> LeftOut:
    """The output of this part of a log file, with the output that the note in the file stands for."""
    lines, size, previous = 0, end - begin, b""
    with path.open("rb") as file:
        for block in _blocks(file, begin, end):
            lines += block.count(b"\n")
            for note in NOTE_LINE.finditer(previous + block):
                if note.end() > len(previous):
                    lines += int(note[1]) - 1
                    size += int(note[2]) - len(note[0])
            previous = (previous + block)[-200:]
    return LeftOut(lines=lines, bytes=size)


def _blocks(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    file.seek(begin)
    while begin < end and (block := file.read(min(READ_BYTES, end - begin))):
        begin += len(block)
        yield block
