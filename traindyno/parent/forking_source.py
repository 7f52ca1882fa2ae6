"""The process that forks runs, as the parent sees it: orders go in, answers come out."""

import json
import os
import subprocess
import sys
import time
from typing import Callable, Dict, Optional

from traindyno.core.jobs.journal_format import MARK_VARIABLE
from traindyno.parent.forking_order import process_environment
from traindyno.parent.launch import Setting, end_with_this_process

FORKING_PROGRAM = "traindyno_ranks.py"
READY = "ready"
LOOK_AGAIN_SECONDS = 0.05


class Source:
    """A process that does the imports, and then forks."""

    def __init__(self, setting: Setting) -> None:
        reader, writer = os.pipe()
        # Ranks have the mark in their own environment: this process has not started them.
        environment = {name: value for name, value in process_environment(setting).items() if name != MARK_VARIABLE}
        try:
            self._process = subprocess.Popen(
                [sys.executable, FORKING_PROGRAM, str(writer)],
                stdin=subprocess.PIPE,
                stdout=setting.output,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=(writer,),
                start_new_session=True,
                preexec_fn=end_with_this_process,  # noqa: PLW1509 -- the parent has one thread
            )
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        self._reader = reader
        self._text = b""
        self._orders = 0

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def becomes_ready(self, goes_on: Callable[[], bool]) -> bool:
        """False if it says why it can't fork, ends, or is not waited for any longer."""
        while goes_on():
            answer = self.answer()
            if answer is not None:
                return answer == READY
            time.sleep(LOOK_AGAIN_SECONDS)
        return False

    def answer(self) -> Optional[str]:
        """The next line; None if there is none yet, empty if there will be none."""
        while b"\n" not in self._text:
            try:
                block = os.read(self._reader, 4096)
            except BlockingIOError:
                return None
            if not block:
                return ""
            self._text += block
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    def order(self, document: Dict[str, object]) -> str:
        """The number with which the answer begins."""
        assert self._process.stdin is not None
        self._orders += 1
        self._process.stdin.write(json.dumps({**document, "number": self._orders}).encode() + b"\n")
        self._process.stdin.flush()
        return str(self._orders)

    def end(self) -> int:
        """Its exit code or negative signal, never 0."""
        self._process.kill()
        return self._process.wait() or 1
