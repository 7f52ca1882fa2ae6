"""A run's output: a log of bounded size, of which the first part is also the job's output."""

import os
import sys
from pathlib import Path

from traindyno.core.jobs.journal_format import ERROR, INSTEAD_OF_ERROR, RUN_LINE

SHOWN_BYTES = 2**18
MOST_BYTES = 16 * 2**20
KEPT_BYTES = 4 * 2**20
LAST_BYTES = 3000
READ_BYTES = 2**16


class RunOutput:
    """The run's processes append to the file; they never wait for the parent."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self._prefix = RUN_LINE.format(run_id).encode()
        self._read = self._shown = 0
        self._rest = b""
        self._at_first = os.O_TRUNC

    def open(self) -> int:
        """A descriptor for the run's processes. The first one empties the log."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(
                str(self.path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | self._at_first, 0o644
            )
        except OSError:
            return os.open(os.devnull, os.O_WRONLY)
        self._at_first = 0
        return descriptor

    def show_new(self) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                while self._shown < SHOWN_BYTES:
                    block = file.read(READ_BYTES)
                    if not block:
                        break
                    self._read += len(block)
                    self._show(block)
            if self.path.stat().st_size > MOST_BYTES:
                with self.path.open("rb") as file:
                    file.seek(-KEPT_BYTES, os.SEEK_END)
                    kept = file.read()
                os.truncate(str(self.path), 0)
                self._read = 0
                self.path.with_suffix(".earlier.log").write_bytes(kept)
        except OSError:
            return

    def finish(self) -> None:
        self.show_new()
        if self._rest and self._shown < SHOWN_BYTES:
            self._show(b"\n")

    def last_text(self) -> str:
        try:
            with self.path.open("rb") as file:
                file.seek(max(self.path.stat().st_size - LAST_BYTES, 0))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def _show(self, block: bytes) -> None:
        lines = (self._rest + block).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > READ_BYTES:
            lines = [*lines, self._rest]
            self._rest = b""
        for line in lines:
            self._print(self._prefix + line)
            if self._shown >= SHOWN_BYTES:
                name = self.path.name.encode()
                self._print(
                    self._prefix + b"more than this is in " + name + b" of the job's output"
                )
                return

    def _print(self, line: bytes) -> None:
        self._shown += len(line) + 1
        text = line.decode("utf-8", "replace").replace(ERROR, INSTEAD_OF_ERROR)
        say(text)


def say(text: str) -> None:
    """A line of the job's output; a closed or full output doesn't end the parent."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except (OSError, ValueError):
        return
