"""The question before a command changes something that it can't change back."""

import sys

from traindyno.cli.output import tell
from traindyno.core.errors import TraindynoError


class NotConfirmed(TraindynoError):
    """Nothing was changed, because no one confirmed it."""


def confirm(question: str, *, otherwise: str) -> None:
    """Raises NotConfirmed with ``otherwise``, such as "nothing was sent", unless the answer is yes."""
    tell(f"{question} [y/N]")
    answer = sys.stdin.readline()
    if not answer:
        raise NotConfirmed(f"{otherwise}: no answer came; accepted: y or n, or the option --yes")
    if answer.strip().lower() not in {"y", "yes"}:
        raise NotConfirmed(otherwise)
