"""Writes the step log: step lines from marks and tensors, immediately on a CPU, and once per window
on a device.
"""

import json
import operator
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from traindyno.callbacks.clock import HostClock, now
from traindyno.callbacks.environment import allocator_retries
from traindyno.core.step_log.line import (
    ALLOCATOR_RETRIES,
    BETWEEN_STEPS,
    CPU_SECONDS,
    IN_BACKGROUND,
    RETRIES,
    UNLOGGED_STEPS,
    WAIT_SECONDS,
    LoggedStep,
    phase_line,
    step_line,
)

# A log that lacks a smaller share of the steps shows their rate.
MOST_UNLOGGED_SHARE = 0.02
WINDOW_SECONDS = 1.0
FLUSH_INTERVAL_SECONDS = 1.0
_encode = json.JSONEncoder(separators=(",", ":")).encode


class BetweenSteps:
    """Counts the steps of optimizers between the logged steps, and the CPU time of the thread that
    trains.

    An optimizer that steps in logged steps and between them trains without logging. Where none
    steps in logged steps, the one step after each belongs to it, and more don't. Versions of torch
    without the hook count none.
    """

    def __init__(self) -> None:
        self._cpu_seconds = self._wait_seconds = 0.0
        self._is_open = False
        self._gaps = -1
        self._written = 0
        self._ended_cpu = time.thread_time()
        # By optimizer
        self._inside: Dict[int, int] = {}
        self._outside: Dict[int, int] = {}
        self._since_last: Dict[int, int] = {}
        register = getattr(
            sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None
        )
        if register is not None:
            register(self._note)

    def _note(self, optimizer: Any, *_: Any) -> None:
        counts = self._inside if self._is_open else self._since_last
        counts[id(optimizer)] = counts.get(id(optimizer), 0) + 1

    def begin_step(self, wait_seconds: float) -> None:
        self._wait_seconds += wait_seconds
        self._cpu_seconds += time.thread_time() - self._ended_cpu
        self.count()
        self._gaps += 1
        self._is_open = True

    def count(self) -> None:
        """The steps of optimizers since the last logged step or phase were none of a phase."""
        for name, count in self._since_last.items():
            self._outside[name] = self._outside.get(name, 0) + count
        self._since_last.clear()

    def forget(self) -> None:
        """A step or a phase has ended: what was done in it is logged."""
        self._since_last.clear()
        self._is_open = False
        self._ended_cpu = time.thread_time()

    @property
    def is_due(self) -> bool:
        """Whether the log has to say that it lacks steps, before it ends: the process may be
        killed.
        """
        unlogged = self._unlogged()
        return bool(unlogged) and unlogged >= 1.25 * self._written

    def facts(self) -> Dict[str, Any]:
        self._written = self._unlogged()
        return {
            UNLOGGED_STEPS: self._written,
            CPU_SECONDS: self._cpu_seconds,
            WAIT_SECONDS: self._wait_seconds,
        }

    def _unlogged(self) -> int:
        """0 if they are too few to matter."""
        if self._inside:
            most = max((self._outside.get(name, 0) for name in self._inside), default=0)
        else:
            most = max(self._outside.values(), default=0) - self._gaps
        return most if most > max(1.0, MOST_UNLOGGED_SHARE * self._gaps) else 0


class StepLogFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: List[Union[str, Dict[str, Any]]] = []
        self._flushed = now()
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, line: Dict[str, Any]) -> None:
        self._append(_encode(line))

    def write_later(self, line: Dict[str, Any]) -> None:
        """Writes a line of numbers that nobody changes.

        Many are encoded together, which is faster than one by one.
        """
        self._append(line)

    def _append(self, line: Union[str, Dict[str, Any]]) -> None:
        self._lines.append(line)
        if now() - self._flushed >= FLUSH_INTERVAL_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._flushed = now()
        if not self._lines:
            return
        with self._lock:
            lines = self._lines[:]
            text = "".join(
                (line if isinstance(line, str) else _encode(line)) + "\n" for line in lines
            )
            # They are dropped after the encoding, which may fail, and before the writing: a full
            # disk takes a part, and the same lines again would count their steps twice.
            del self._lines[: len(lines)]
            # The file is opened for each write: a killed process leaves complete lines, and
            # SageMaker's upload sees them immediately.
            with self.path.open("a", encoding="utf-8") as log:
                log.write(text)


def log_path(directory: str, job_name: str, rank: int, start_seconds: float) -> Path:
    return (
        Path(directory) / job_name / "rank-{:05d}.{}.jsonl".format(rank, int(start_seconds * 1000))
    )


class StepRecorder:
    """A step begins where the previous step or phase ended, so that the wait for data is a part of
    it.
    """

    def __init__(
        self,
        writer: StepLogFile,
        clock: HostClock,
        peak_memory_bytes: Callable[[], Optional[int]],
        observe: Optional[Callable[[List[LoggedStep]], None]] = None,
        retries: Callable[[], int] = allocator_retries,
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._peak_memory_bytes = peak_memory_bytes
        self._observe = observe
        self._retries = retries
        self._known_retries = 0
        # Steps with their learning rates. Begin and end are marks of the clock; loss and samples
        # may be on the device.
        self._pending: List[Tuple[LoggedStep, Optional[float]]] = []
        self._window_began = now()
        self._wait_seconds = 0.0
        self._between = BetweenSteps()
        self._open_step: Optional[str] = None
        self._has_recorded = False
        self.mark_end()

    def mark_end(self) -> None:
        """The next step begins here."""
        self._previous_end = self._clock.mark()
        self.previous_end_seconds = now()
        self._between.forget()

    def begin_phase(self) -> None:
        self._between.count()

    def begin(self, place: str) -> None:
        """Raises RuntimeError if a step is open.

        ``place`` is the script's line, for that message.
        """
        if self._open_step is not None:
            raise RuntimeError(
                "a step begins at {} while the step that began at {} is open; expected one step "
                "at a time in a process: a step inside another, or in a second thread, would "
                "count its samples twice".format(place, self._open_step)
            )
        self._open_step = place
        self._wait_seconds = now() - self.previous_end_seconds
        self._between.begin_step(self._wait_seconds)

    def end(
        self,
        number: int,
        samples: Any,
        tokens: Optional[int],
        loss: Any,
        learning_rate: Optional[float],
    ) -> None:
        begin = self._previous_end
        self.abandon()
        self.mark_end()
        # A count of NumPy's can't be encoded, and is refused here rather than when its line is
        # written.
        samples = samples if is_on_device(samples) else operator.index(samples)
        tokens = None if tokens is None else operator.index(tokens)
        loss = loss.detach() if hasattr(loss, "detach") else loss
        step = LoggedStep(
            number, begin, self._previous_end, self._wait_seconds, samples, tokens, loss, None
        )
        self._pending.append((step, learning_rate))
        if self._clock.is_immediate or now() - self._window_began >= WINDOW_SECONDS:
            self.close_window()
        # Reading the loss may have waited for the device, which is not waiting for data.
        self.previous_end_seconds = now()

    def abandon(self) -> None:
        """The open step ended with an exception, which the script handles."""
        self._open_step = None
        self._between.forget()

    def close_window(self) -> None:
        """Read the device's times and losses of all pending steps: the only place that waits for
        the device.
        """
        pending = self._pending
        self._pending = []
        if pending:
            times = self._clock.resolve(
                [mark for step, _ in pending for mark in (step.begin, step.end)]
            )
            losses = [None if step.loss is None else float(step.loss) for step, _ in pending]
            peak = self._peak_memory_bytes()
            steps: List[LoggedStep] = []
            for i, (step, rate) in enumerate(pending):
                begin = times[2 * i]
                end = times[2 * i + 1]
                samples = int(step.samples)
                known = LoggedStep(
                    step.step, begin, end, step.wait_seconds, samples, step.tokens, losses[i], peak
                )
                steps.append(known)
                learning_rate = None if rate is None else float(rate)
                self._writer.write_later(step_line(**known._asdict(), learning_rate=learning_rate))
            retries = self._retries()
            if retries > self._known_retries:
                self._known_retries = retries
                at = now()
                self._writer.write(
                    phase_line(ALLOCATOR_RETRIES, at, at, {RETRIES: retries, IN_BACKGROUND: True})
                )
            if self._between.is_due:
                at = now()
                self._writer.write(
                    phase_line(
                        BETWEEN_STEPS, at, at, {**self._between.facts(), IN_BACKGROUND: True}
                    )
                )
            if not self._has_recorded:
                # A script that hangs after it, and is killed, has not hung before its first step.
                self._has_recorded = True
                self._writer.flush()
            if self._observe is not None:
                self._observe(steps)
        self._window_began = now()

    def facts_between_steps(self) -> Dict[str, Any]:
        return self._between.facts()


def is_on_device(samples: Any) -> bool:
    """Whether reading the number would wait for a device (see ``count_rows``)."""
    return getattr(getattr(samples, "device", None), "type", "cpu") != "cpu"
