"""Follow an execution to its end: what is read of it, again and again, and the lines that say it."""

import queue
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from botocore.exceptions import BotoCoreError

from traindyno.api.execution_state import State, read_state
from traindyno.api.lab_target import LabTarget
from traindyno.api.progress_text import ended_line, prepared_line, state_line
from traindyno.api.quiet_text import is_explained, quiet_line
from traindyno.aws.executions import Execution
from traindyno.core.errors import TraindynoError

# A reading takes 0.1 s of a core: one each second is 5 % of two cores, and makes the run that is measured contended.
LOCAL_POLL_SECONDS = 3.0
AWS_POLL_SECONDS = 10.0
# With the longest pause and a request or two, a line comes at least every 30 s.
QUIET_SECONDS = 18.0
STALL_SECONDS = 20.0
FindStall = Callable[[], str | None]
# The state, and for how long it has not changed.
FindQuiet = Callable[[State, float], str | None]


class CloudUnreachable(TraindynoError):
    """The lab does not answer; its executions may still be running."""


@dataclass(frozen=True, slots=True)
class NoProgress:
    """The execution makes no progress; ``reason`` says why."""

    reason: str


def follow(target: LabTarget, execution_id: str, display: "Display") -> Execution:
    """Returns when the execution has ended. Interrupting it leaves the execution running."""
    seconds = LOCAL_POLL_SECONDS if target.is_local else AWS_POLL_SECONDS
    observations = observe(
        lambda: read_state(target, execution_id), target.find_stall, seconds, partial(_find_quiet, target)
    )
    with display:
        for seen in observations:
            display.update(seen)
            if isinstance(seen, State) and not seen.execution.is_running:
                return seen.execution
    raise AssertionError("an execution is observed until it has ended")


def _find_quiet(target: LabTarget, state: State, quiet_seconds: float) -> str | None:
    if is_explained(state, quiet_seconds, is_local=target.is_local):
        return None
    return quiet_line(state, quiet_seconds, option=target.option, logs=target.function_logs)


def observe(
    read: Callable[[], State], find_stall: FindStall, seconds: float, find_quiet: FindQuiet = lambda *_: None
) -> Iterator[State | NoProgress]:
    """Yields states at least ``seconds`` apart, and NoProgress if for 20 s no state was read or none differed for a
    reason that is known: the cloud's, or ``find_quiet``'s, which comes again after twice the time without a change.

    Reading takes at most a tenth of the time: the rows of thousands of runs take seconds to read.
    """
    moved_at = looked_at = told_at = time.monotonic()
    position = None
    while True:
        began = time.monotonic()
        reading = _Reading(read)
        while (state := reading.wait(STALL_SECONDS)) is None:
            yield NoProgress(find_stall() or f"the lab has not answered for {time.monotonic() - began:.0f} s")
        if isinstance(state, BotoCoreError):
            raise CloudUnreachable(f"the lab does not answer: {find_stall() or state}") from state
        if isinstance(state, BaseException):
            raise state
        yield state
        if state.position != position:
            moved_at = looked_at = told_at = time.monotonic()
            position = state.position
        elif (now := time.monotonic()) - looked_at > STALL_SECONDS:
            looked_at = now
            if reason := find_stall():
                yield NoProgress(reason)
            elif now - moved_at >= 2 * (told_at - moved_at) and (reason := find_quiet(state, now - moved_at)):
                told_at = now
                yield NoProgress(reason)
        time.sleep(max(seconds, 9 * (time.monotonic() - began)))


class _Reading:
    """One reading in a separate thread: a request to a service that does not answer takes minutes to fail."""

    def __init__(self, read: Callable[[], State]) -> None:
        self._read = read
        self._answer: queue.Queue[State | BaseException] = queue.Queue()
        threading.Thread(target=self._run, name="progress", daemon=True).start()

    def wait(self, seconds: float) -> State | BaseException | None:
        try:
            return self._answer.get(timeout=seconds)
        except queue.Empty:
            return None

    def _run(self) -> None:
        try:
            self._answer.put(self._read())
        except BaseException as error:  # noqa: BLE001 -- the waiting thread raises it
            self._answer.put(error)


@dataclass
class Display(AbstractContextManager["Display", None]):
    """Says each ended run and preparation once; ``told`` holds the ids of those already said."""

    say: Callable[[str], None]
    told: set[str] = field(default_factory=set)

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, seen: State | NoProgress) -> None:
        if isinstance(seen, NoProgress):
            self.tell(f"no progress: {seen.reason}")
            return
        for run_id in sorted(seen.ended.keys() - self.told):
            self.told.add(run_id)
            self.tell(ended_line(len(self.told & seen.ended.keys()), seen.runs_planned, seen.ended[run_id]))
        for run_id in sorted(seen.prepared.keys() - self.told):
            self.told.add(run_id)
            self.tell(prepared_line(run_id, seen.prepared[run_id]))
        self.show(seen)

    def tell(self, line: str) -> None:
        self.say(line)

    @abstractmethod
    def show(self, state: State) -> None:
        """Called with each state that was read."""


class PlainDisplay(Display):
    """Says a line at least every 30 s."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(say)
        self._told_at = float("-inf")
        self._has_told_preparing = False

    def tell(self, line: str) -> None:
        super().tell(line)
        self._told_at = time.monotonic()

    def show(self, state: State) -> None:
        if state.preparing and not self._has_told_preparing:
            self._has_told_preparing = True
            self.tell(state.preparing)
        elif time.monotonic() - self._told_at >= QUIET_SECONDS and state.execution.is_running:
            self.tell(state_line(state))
