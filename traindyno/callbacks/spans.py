"""What a user's ``with`` statements mark in a step log: steps, and phases that are no steps."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Optional, Type

from traindyno.callbacks.clock import now

if TYPE_CHECKING:
    from traindyno.callbacks.log import StepLog


class Step:
    """One optimizer step. ``loss`` may be set to a number or a tensor; a tensor on a device is read later."""

    def __init__(self, log: "StepLog", samples: int, tokens: Optional[int], learning_rate: Optional[float]) -> None:
        self._log = log
        self.samples = samples
        self.tokens = tokens
        self.learning_rate = learning_rate
        self.loss: Any = None

    def __enter__(self) -> "Step":
        self._log.begin_step()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if error is None:
            self._log.end_step(self.samples, self.tokens, self.loss, self.learning_rate)


class Phase:
    """A stretch of time that is not a step: load, compile, evaluate, save, or a name of your own."""

    def __init__(self, log: "StepLog", name: str, facts: Optional[Dict[str, Any]]) -> None:
        self._log = log
        self._name = name
        self.facts = dict(facts or {})
        self._begin = 0.0

    def __enter__(self) -> "Phase":
        self._begin = now()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if error is None:
            self._log.phase_ended(self._name, self._begin, self.facts)
