"""What makes a run doubtful although its process exited with status 0."""

import re
from collections.abc import Sequence

from traindyno.core.step_log.content import Session

MOST_AFTER_TRACEBACK = 3
LONGEST_ERROR = 300
_TRACEBACK = "Traceback (most recent call last):"
_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?$")


def describe_doubt(session: Session | None, log_tail: Sequence[str]) -> str | None:
    """``log_tail``: the last lines of the job's log. None where nothing is doubtful."""
    found = [each for each in (_ending_traceback(log_tail), _cut_off(session)) if each is not None]
    return "; ".join(found) or None


def _cut_off(session: Session | None) -> str | None:
    cut_off = [each for each in session.processes if not each.is_ended] if session else []
    if not cut_off:
        return None
    steps = len(cut_off[0].steps)
    return (
        f"the process of rank {cut_off[0].rank} exited with status 0 without closing its step log, as os._exit does:"
        f" what it did after step {cut_off[0].steps[-1].step if steps else 0} is unknown"
    )


def _ending_traceback(log_tail: Sequence[str]) -> str | None:
    """The script caught an error, printed it, and ended as if all were well."""
    lines = [line.rstrip() for line in log_tail if line.strip()]
    begins = [place for place, line in enumerate(lines) if line.strip().endswith(_TRACEBACK)]
    if not begins:
        return None
    indent = len(lines[begins[-1]]) - len(_TRACEBACK)
    block = [line[indent:] for line in lines[begins[-1] + 1 :]]
    errors = [place for place, line in enumerate(block) if not line.startswith(" ") and _ERROR.match(line)]
    if not errors or len(block) - errors[0] - 1 > MOST_AFTER_TRACEBACK:
        return None
    return f"its log ends in a traceback, although it exited with status 0: {block[errors[0]][:LONGEST_ERROR]}"
