"""The ``with`` blocks of a user's script in a step log: steps, and phases outside of steps."""

import operator
import sys
from types import TracebackType
from typing import Any, Callable, Dict, Optional, Tuple, Type

from traindyno.callbacks.checkpoints import AnyPath, written_bytes
from traindyno.callbacks.clock import now
from traindyno.callbacks.recorder import is_on_device
from traindyno.core.step_log.line import CHECKPOINT

BeginStep = Callable[[str], None]
EndStep = Callable[[Any, Optional[int], Any, Optional[float]], None]
AbandonStep = Callable[[BaseException, Any], None]

EndPhase = Callable[[str, float, Dict[str, Any]], None]


class Step:
    """One optimizer step.

    ``loss`` may be set to a number or a tensor; a tensor on a device is read later.

    A step that ends with an exception is not logged.
    """

    def __init__(
        self,
        begin: BeginStep,
        end: EndStep,
        abandon: AbandonStep,
        *,
        samples: int,
        tokens: Optional[int],
        learning_rate: Optional[float],
    ) -> None:
        self._begin = begin
        self._end = end
        self._abandon = abandon
        self.samples = samples
        self.tokens = tokens
        self.learning_rate = learning_rate
        self.loss: Any = None

    def __enter__(self) -> "Step":
        self._begin(_place_of_caller())
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            self._end(self.samples, self.tokens, self.loss, self.learning_rate)
        else:
            self._abandon(error, self.samples)


class Phase:
    """A stretch of time that is not a step: load, compile, evaluate, save, or a name of your
    own.
    """

    def __init__(self, end: EndPhase, name: str, facts: Optional[Dict[str, Any]]) -> None:
        self._end = end
        self._name = name
        self.facts = dict(facts or {})
        self._begin = 0.0

    def __enter__(self) -> "Phase":
        self._begin = now()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            self._end(self._name, self._begin, self.facts)


class CheckpointPhase(Phase):
    """Has ``bytes`` among its facts, if the folder is known or the script sets them."""

    def __init__(self, end: EndPhase, facts: Dict[str, Any], folder: Optional[AnyPath]) -> None:
        super().__init__(end, CHECKPOINT, facts)
        self._folder = folder

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None and self._folder is not None:
            self.facts["bytes"] = written_bytes(self._folder, since=int(self._begin))
        super().__exit__(kind, error, trace)


def _place_of_caller() -> str:
    """File and line of the ``with`` statement."""
    frame = sys._getframe(2)
    return "{}:{}".format(frame.f_code.co_filename, frame.f_lineno)


def whole_counts(
    samples: Any, tokens: Any, world_size: Callable[[], int]
) -> Tuple[Any, Optional[int]]:
    """The counts as integers, also from NumPy and tensors.

    Zero is valid only in a job of several processes.

    Samples that only a device knows stay there until the step is written.
    """
    if is_on_device(samples):
        return samples, None if tokens is None else operator.index(tokens)
    count = operator.index(samples)
    least = 1 if count > 0 or world_size() == 1 else 0
    if count < least:
        raise ValueError(
            "a step was logged with samples={}; expected the number of samples that this process "
            "trained on in the step, at least {}".format(count, least)
        )
    return count, None if tokens is None else operator.index(tokens)
