"""SIGTERM to the parent: the job is stopped, or its host is taken back."""

import signal
from types import FrameType
from typing import Optional

EXIT_CODE = 128 + signal.SIGTERM


class StopRequest:
    """Runs that have not ended are left for the next attempt."""

    def __init__(self) -> None:
        self.is_made = False

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._make)

    def _make(self, _number: int, _frame: Optional[FrameType]) -> None:
        self.is_made = True
