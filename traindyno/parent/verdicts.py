"""How a run ends: one word for all hosts."""

import json
from typing import Any, Dict, NamedTuple, Optional

from traindyno.core.jobs.journal_format import EXITED, OUTPACED, THROWN_AWAY

# Nothing that its processes could still write is wanted.
ENDED_AT_ONCE = (OUTPACED, THROWN_AWAY)


class Verdict(NamedTuple):
    """``left``: the run has no end, for this reason, and goes into the next attempt. Otherwise ``reason`` is its end.

    ``host`` is the one whose process gave the exit code. ``bound`` is that of a run that was outpaced.
    """

    reason: Optional[str] = None
    left: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    host: Optional[str] = None
    bound: Optional[Dict[str, Any]] = None

    @property
    def has_failed(self) -> bool:
        return self.reason not in (EXITED, *ENDED_AT_ONCE) or bool(self.exit_code or self.signal)

    @property
    def is_at_once(self) -> bool:
        """Whether its processes are killed without time to end by themselves."""
        return self.reason in ENDED_AT_ONCE

    def word(self) -> str:
        return json.dumps(self._asdict())


COMPLETED = Verdict(reason=EXITED, exit_code=0)


def of_word(word: str) -> Verdict:
    return Verdict(**json.loads(word))


def of_status(status: int, host: str) -> Verdict:
    """Verdict on a process that failed. ``status``: exit code, or the negative number of a signal."""
    if status < 0:
        return Verdict(reason=EXITED, signal=-status, host=host)
    return Verdict(reason=EXITED, exit_code=status, host=host)
