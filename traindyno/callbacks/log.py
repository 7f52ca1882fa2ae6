"""The step log of a plain training loop: ``with step_log.step(samples=...)`` around each optimizer step."""

import atexit
import math
import os
import sys
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from traindyno.callbacks import failure
from traindyno.callbacks.clock import HostClock, clock_for_this_process, now
from traindyno.callbacks.environment import environment_facts, peak_memory_bytes
from traindyno.callbacks.process import Process, this_process
from traindyno.callbacks.recorder import RecordedStep, StepMarks, StepRecorder
from traindyno.callbacks.spans import Phase, Step
from traindyno.callbacks.writer import StepLogWriter, log_path
from traindyno.core.step_log.line import (
    DIRECTORY_VARIABLE,
    end_line,
    environment_line,
    error_line,
    evaluation_line,
    model_line,
    phase_line,
)


class StepLog:
    """Writes nothing, and costs next to nothing, where Traindyno did not start the process."""

    def __init__(self, directory: Optional[str], *, otherwise: str = failure.USER_CODE_ERROR) -> None:
        self.is_enabled = bool(directory)
        self.steps = 0
        self._directory = directory or ""
        self._observe: Callable[[List[RecordedStep]], None] = self._name_divergence
        self._otherwise = otherwise
        self.measure_with(clock_for_this_process, peak_memory_bytes)
        self._started = now()
        self._process: Optional[Process] = None
        self._recorder: Optional[StepRecorder] = None
        self._has_ended = False
        self._has_diverged = False
        self._previous_end: Any = None
        self._previous_end_seconds = 0.0
        self._wait_seconds = 0.0

    def measure_with(self, make_clock: Callable[[], HostClock], peak_memory: Callable[[], Optional[int]]) -> None:
        """The clock is made at the first step: by then the script has chosen its device."""
        self._make_clock = make_clock
        self._peak_memory = peak_memory

    def observe_with(self, observe: Callable[[List[RecordedStep]], None]) -> None:
        """Called with the steps as they become known; it may raise to end the run."""
        self._observe = observe

    def step(self, samples: int, tokens: Optional[int] = None, learning_rate: Optional[float] = None) -> Step:
        """``samples`` and ``tokens``: this process's own share of the step's work."""
        return Step(self, samples, tokens, learning_rate)

    def phase(self, name: str, facts: Optional[Dict[str, Any]] = None) -> Phase:
        return Phase(self, name, facts)

    def model(self, parameters: int, flops_per_token: Optional[float] = None, formula: Optional[str] = None) -> None:
        self._write(model_line, parameters, flops_per_token, formula)

    def evaluation(self, metrics: Dict[str, float]) -> None:
        self._write(evaluation_line, self.steps, metrics)

    def error(self, outcome: str, message: str) -> None:
        self._write(error_line, outcome, message)
        self.flush()

    def begin_step(self) -> None:
        if not self.is_enabled:
            return
        if self._recorder is None:
            self._start_recording()
        self._wait_seconds = now() - self._previous_end_seconds

    def end_step(self, samples: int, tokens: Optional[int], loss: Any, learning_rate: Optional[float]) -> None:
        if self._recorder is None:
            return
        begin = self._previous_end
        self._mark_end()
        self.steps += 1
        loss = loss.detach() if hasattr(loss, "detach") else loss
        self._recorder.add(
            StepMarks(self.steps, begin, self._previous_end, self._wait_seconds, samples, tokens, loss, learning_rate)
        )
        # Reading the loss may have waited for the device: that is no waiting for data.
        self._previous_end_seconds = now()

    def phase_ended(self, name: str, begin: float, facts: Dict[str, Any]) -> None:
        self.close_window()
        self.add_phase(name, begin, now(), facts)
        if self._recorder is not None:
            self._mark_end()

    def add_phase(self, name: str, begin: float, end: float, facts: Dict[str, Any]) -> None:
        """A phase that someone else timed, also one inside a step."""
        if self.is_enabled:
            self.open()
            self._writer.write(phase_line(name, begin, end, facts))

    def close_window(self) -> None:
        """Wait for the device and write the steps so far."""
        if self._recorder is not None:
            self._recorder.close_window()

    def flush(self) -> None:
        if self._process is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write the last line; a log without it was cut off."""
        if self._process is None or self._has_ended:
            return
        self._has_ended = True
        self.close_window()
        self._writer.write(end_line(now(), self.steps))
        self._writer.flush()

    def failed(self, error: BaseException) -> None:
        """Name the outcome in the log and in SageMaker's failure file."""
        if not self.is_enabled or self._has_ended:
            return
        self.open()
        outcome = failure.classify(error, self._otherwise)
        message = failure.describe(error, this_process().rank)
        self._has_ended = True
        if outcome != failure.STOPPED_BY_USER:
            failure.report_failure(outcome, message)
        try:
            self.error(outcome, message)
        except OSError as full_disk:
            print("{} could not be written: {}".format(self._writer.path, full_disk), file=sys.stderr)  # noqa: T201

    def open(self, facts: Optional[Dict[str, Any]] = None) -> None:
        """Write the environment line, once, and arrange for the last one."""
        if self._process is not None or not self.is_enabled:
            return
        process = self._process = this_process()
        self._writer = StepLogWriter(log_path(self._directory, process.job_name, process.rank, self._started))
        if facts is None:
            facts = environment_facts()
        self._writer.write(environment_line(now(), process.rank, process.world_size, process.host, facts))
        self._writer.flush()
        atexit.register(self.close)
        self._name_the_cause_of_a_crash()

    def _start_recording(self) -> None:
        self.open()
        self._clock = self._make_clock()
        self._recorder = StepRecorder(self._writer, self._clock, self._peak_memory, self._observe)
        self._mark_end()

    def _mark_end(self) -> None:
        self._previous_end, self._previous_end_seconds = self._clock.mark(), now()

    def _name_the_cause_of_a_crash(self) -> None:
        previous_hook = sys.excepthook

        def hook(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
            previous_hook(kind, error, trace)
            self.failed(error)

        sys.excepthook = hook

    def _name_divergence(self, steps: List[RecordedStep]) -> None:
        diverged = next((step for step in steps if step.loss is not None and not math.isfinite(step.loss)), None)
        if diverged is not None and not self._has_diverged:
            self._has_diverged = True
            self.error(failure.LOSS_DIVERGED, "the loss of step {} is {}".format(diverged.step, diverged.loss))

    def _write(self, line: Callable[..., Dict[str, Any]], *values: Any) -> None:
        if self.is_enabled:
            self.open()
            self._writer.write(line(now(), *values))


def step_log_of_this_process() -> StepLog:
    return StepLog(os.environ.get(DIRECTORY_VARIABLE))
