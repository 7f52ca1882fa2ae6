"""The step log of a plain training loop: ``with step_log.step(batch=batch)`` around each optimizer
step.
"""

import atexit
import math
import operator
import os
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from traindyno.callbacks import failure, process
from traindyno.callbacks.batch import (
    checksum,
    count_rows,
    own_part,
    refuse_length_of_batch,
    values_per_row,
)
from traindyno.callbacks.checkpoints import AnyPath
from traindyno.callbacks.clock import HostClock, clock_for_this_process, now
from traindyno.callbacks.environment import environment_facts, host_id, peak_memory_bytes
from traindyno.callbacks.full_disk import full_disk_text
from traindyno.callbacks.host_load import HostLoadMeter
from traindyno.callbacks.process import INDEPENDENT, PROCESS_GROUP, require_process_group
from traindyno.callbacks.recorder import StepLogFile, StepRecorder, is_on_device, log_path
from traindyno.callbacks.spans import CheckpointPhase, Phase, Step, whole_counts
from traindyno.core.step_log.line import (
    BATCH_SEARCH,
    CHECKSUMS,
    DIRECTORY_VARIABLE,
    FIRST_BATCHES,
    IN_BACKGROUND,
    KEPT_STEPS,
    PAUSE,
    ROW_VALUES,
    SEED,
    SEED_VARIABLE,
    SETUP,
    LoggedStep,
    end_line,
    environment_line,
    error_line,
    evaluation_line,
    model_line,
    phase_line,
)

TEARDOWN = "teardown"
CHECKED_BATCHES = 3


class _Training:
    """One of the trainings of a process, as a callback tells them.

    ``began``: when its first step did.
    """

    def __init__(self, steps_before: int, batch: Optional[int], asked: Optional[int]) -> None:
        self.steps_before = steps_before
        self.batch = batch
        self.asked = asked
        self.began: Optional[float] = None
        self.ended: Optional[float] = None
        self.least_samples = math.inf


class StepLogger:
    """Writes the step log of one process.

    Writes nothing, at negligible cost, if Traindyno did not start the process. A child that the
    process forks later also writes nothing: the log belongs to its parent.
    """

    def __init__(
        self, directory: Optional[str], *, otherwise: str = failure.USER_CODE_ERROR
    ) -> None:
        self.is_enabled = bool(directory)
        self.steps = 0
        self._steps_before = 0
        self._directory = directory or ""
        self._observe: Callable[[List[LoggedStep]], None] = self._name_divergence
        self._otherwise = otherwise
        self.measure_with(clock_for_this_process, peak_memory_bytes)
        self._began = now()
        self._explained_until = self._began
        self._is_open = False
        self._opening = threading.RLock()
        self._recorder: Optional[StepRecorder] = None
        self._has_ended = False
        self._end_reason: Optional[str] = None
        self._has_diverged = False
        self._is_independent = False
        self._training: Optional[_Training] = None
        self._lacking: Optional[int] = None  # samples of a step that ran out of memory
        self._pause: Optional[Tuple[str, float, Dict[str, Any]]] = (
            None  # a phase that the next step ends
        )
        self._facts: Dict[str, Any] = {}
        self._shared_by: Optional[int] = None
        self._batches_noted = 0
        self._checksums: List[int] = []
        self._row_values: List[int] = []

    def measure_with(
        self, make_clock: Callable[[], HostClock], peak_memory: Callable[[], Optional[int]]
    ) -> None:
        """The clock is made at the first step: by then the script has chosen its device."""
        self._make_clock = make_clock
        self._peak_memory = peak_memory

    def observe_with(self, observe: Callable[[List[LoggedStep]], None]) -> None:
        """The function is called with the steps when they are known; it may raise to end the
        run.
        """
        self._observe = observe

    def step(
        self,
        samples: Optional[int] = None,
        tokens: Optional[int] = None,
        learning_rate: Optional[float] = None,
        *,
        batch: Any = None,
        shared_by: Optional[int] = None,
    ) -> Step:
        """The step's samples are the rows of ``batch`` (see ``count_rows``), or ``samples`` if the
        script counts them.

        ``samples`` and ``tokens`` are this process's own share of the step's work; with
        ``shared_by`` those of the rows that so many processes train on together, of which this one
        then counts its share. Steps must not overlap.
        """
        self.open()  # a refusal is also written to the log
        if (samples is None) == (batch is None):
            raise TypeError("a step needs batch=... or samples=..., and not both")
        if self.is_enabled:
            self.share_rows(shared_by)
            if samples is None:
                samples = count_rows(batch)
                self.note_batch(batch)
            elif self._recorder is None:
                refuse_length_of_batch(samples, sys._getframe(1).f_locals)
            # The number of processes now: a script may log a phase before it joins its process
            # group.
            samples, tokens = whole_counts(
                samples, tokens, lambda: process.this_process().world_size
            )
            self._note_smaller_batch(samples)
        return Step(
            self.begin_step,
            self.end_step,
            self._abandon_step,
            samples=samples or 0,
            tokens=tokens,
            learning_rate=learning_rate,
        )

    def phase(self, name: str, facts: Optional[Dict[str, Any]] = None) -> Phase:
        if self._recorder is not None:
            self._recorder.begin_phase()
        return Phase(self.phase_ended, name, facts)

    def checkpoint(
        self, folder: Optional[AnyPath] = None, facts: Optional[Dict[str, Any]] = None
    ) -> Phase:
        """Use it around writing a checkpoint.

        The bytes of the files written below ``folder`` are counted. The steps so far are written to
        the log first, because the checkpoint keeps their work.
        """
        self.close_window()
        self.flush()
        return CheckpointPhase(self.phase_ended, {"step": self.steps, **(facts or {})}, folder)

    def independent(self) -> None:
        """This process is meant to train alone, beside others that its launcher started: its
        samples count too.
        """
        self._is_independent = True

    def share_rows(self, processes: Optional[int]) -> None:
        """So many processes train on the rows that this one counts; None is unknown."""
        if processes is not None and processes != self._shared_by:
            launched = process.this_process().world_size
            if operator.index(processes) < 1 or launched % processes:
                raise ValueError(
                    "got shared_by={}, the number of processes that train on the same rows, in a "
                    "run of {}; expected a divisor of {}".format(processes, launched, launched)
                )
            self._shared_by = processes

    def note_batch(self, batch: Any) -> None:
        """The first batches of several processes are compared when the log is read: those of
        processes that share their rows would be counted once in each. So would parts of the same
        rows: they have fewer values than the rows of another cell.
        """
        if self._batches_noted == CHECKED_BATCHES:
            return
        self._batches_noted += 1
        is_alone = self._is_independent or process.this_process().world_size == 1
        digest = None if is_alone or self._shared_by is not None else checksum(batch)
        if digest is not None:
            self._checksums.append(digest)
            self._row_values.append(values_per_row(batch))
        if len(self._checksums) == CHECKED_BATCHES:
            at = now()
            facts = {CHECKSUMS: self._checksums, ROW_VALUES: self._row_values}
            self.add_phase(FIRST_BATCHES, at, at, {**facts, IN_BACKGROUND: True})

    def describe(self, facts: Dict[str, Any]) -> None:
        """Conditions of the measurement that are known before the first step; they are facts of the
        environment.
        """
        self._facts.update(facts)

    def seed(self, otherwise: int = 0) -> int:
        """The seed of this trial, to give to the script's random generators; ``otherwise`` outside
        Traindyno.

        Call it before the first step: the log then says that the script takes the seed, so that
        trials count as draws of it.
        """
        given = os.environ.get(SEED_VARIABLE)
        if given is None:
            return otherwise
        self.describe({SEED: int(given)})
        return int(given)

    def resume(self, steps: int) -> None:
        """The script continues after this many steps of an earlier attempt: its next step has the
        next number. In a process that has done as many, the steps go on counting.
        """
        if self._recorder is None or steps > self.steps:
            self.steps = self._steps_before = steps

    def begin_training(
        self, steps: int, batch: Optional[int] = None, asked: Optional[int] = None
    ) -> None:
        """A training of this process begins.

        The first one continues after ``steps`` of an earlier attempt, the steps of a later one go
        on counting, and the time between the two is a pause.

        One with a smaller ``batch`` than that of a training before it that did not end is the next
        try of a search for a batch that fits into memory: the steps of the one before don't count.
        ``asked``: the batch of the first try.
        """
        if not self.is_enabled:
            return
        self.close_window()
        if self._recorder is not None:
            self._recorder.abandon()
        before = self._training
        is_search = (
            before is not None and before.ended is None and (batch or 0) < (before.batch or 0)
        )
        if before is None:
            self.resume(steps)
        elif is_search:
            self.steps = before.steps_before
            asked = before.asked
        self._training = _Training(self.steps, batch, asked or batch)
        became = (
            {BATCH_SEARCH: "{} became {}".format(asked, batch)}
            if batch and asked and batch < asked
            else {}
        )
        if self._recorder is None:
            self.describe(became)
        elif self._pause is not None:  # no step has begun since
            self._pause[2].update(became)
        elif is_search and before is not None and before.began is not None:
            self._pause = BATCH_SEARCH, before.began, {**became, KEPT_STEPS: self.steps}
        elif before is not None:
            self._pause = PAUSE, before.ended or now(), became

    def _note_smaller_batch(self, samples: Any) -> None:
        """A loop that tries again after a lack of memory, with fewer samples than in any step
        before, searches for its batch, as Accelerate's ``find_executable_batch_size`` does.
        """
        lacking = self._lacking
        training = self._training
        if lacking is not None and training is not None and not is_on_device(samples):
            self._lacking = None
            if samples < min(lacking, training.least_samples):
                training.batch = lacking
                training.asked = training.asked or lacking
                self.begin_training(training.steps_before, samples)

    def end_training(self) -> None:
        self.close_window()
        if self._training is not None:
            self._training.ended = now()

    @property
    def steps_of_this_process(self) -> int:
        """The steps without the steps of earlier attempts."""
        return self.steps - self._steps_before

    def model(
        self,
        parameters: int,
        flops_per_token: Optional[float] = None,
        formula: Optional[str] = None,
        trained: Optional[int] = None,
    ) -> None:
        """Log the size of the model.

        Args:
            parameters: Number of parameters.
            flops_per_token: Operations for one token, forward and backward.
            formula: How they were counted.
            trained: Number of parameters that are trained, where the others are frozen.
        """
        self._write(model_line, parameters, flops_per_token, formula, trained)

    def evaluation(self, metrics: Dict[str, float]) -> None:
        """Log an evaluation: numbers by name.

        A loss that is not finite marks the run as diverged.
        """
        numbers = {name: float(value) for name, value in metrics.items()}
        self._write(evaluation_line, self.steps, numbers)
        for name, value in numbers.items():
            if name.endswith("loss") and not math.isfinite(value):
                self._diverged(
                    "the evaluation's {} after step {} is {}".format(name, self.steps, value)
                )

    def error(self, outcome: str, message: str) -> None:
        self._write(error_line, outcome, message)
        self.flush()

    def begin_step(self, place: str = "a callback") -> None:
        """Begin a step.

        ``place`` is the script's line; the message about steps that overlap names it.
        """
        if not self.is_enabled:
            return
        if self._recorder is None:
            self.open()
            self.add_phase(
                SETUP, self._explained_until, now(), {**self._facts, **self._process_group()}
            )
            self._recorder = StepRecorder(
                self._file, self._make_clock(), self._peak_memory, self._observe
            )
        elif self._pause is not None:
            self.phase_ended(*self._pause)
            self._pause = None
        self._recorder.begin(place)
        if self._training is None:  # of a plain loop
            self._training = _Training(self.steps, None, None)
        if self._training.began is None:
            self._training.began = self._recorder.previous_end_seconds

    def end_step(
        self, samples: Any, tokens: Optional[int], loss: Any, learning_rate: Optional[float]
    ) -> None:
        if self._recorder is None:
            return
        self.steps += 1
        if self._training is not None and not is_on_device(samples):
            self._training.least_samples = min(samples, self._training.least_samples)
        if self._shared_by is not None and self._shared_by > 1:
            place = process.this_process().rank % self._shared_by
            samples = own_part(samples, self._shared_by, place)
            tokens = None if tokens is None else own_part(tokens, self._shared_by, place)
        self._recorder.end(self.steps, samples, tokens, loss, learning_rate)
        self._write_host_load(self._host_load.due_line())

    def phase_ended(self, name: str, begin: float, facts: Dict[str, Any]) -> None:
        self.close_window()
        self.add_phase(name, begin, now(), facts)
        if self._recorder is not None:
            self._recorder.mark_end()

    def add_phase(self, name: str, begin: float, end: float, facts: Dict[str, Any]) -> None:
        """Add a phase that the caller timed, also one inside a step."""
        if self.is_enabled:
            self.open()
            self._explained_until = max(self._explained_until, end)
            self._file.write(phase_line(name, begin, end, facts))

    def close_window(self) -> None:
        """Wait for the device and write the steps so far."""
        if self._recorder is not None:
            self._recorder.close_window()

    def flush(self) -> None:
        if self._is_open:
            self._file.flush()

    def ends_early(self, reason: str) -> None:
        """The run ends before its last step; the log's last line says why (see ``end_line``)."""
        self._end_reason = reason

    def close(self) -> None:
        """Write the last lines; a log without them is truncated."""
        if not self._is_open or self._has_ended:
            return
        self._has_ended = True
        self.close_window()
        self._write_host_load(self._host_load.line())
        last_step_ended = self._recorder.previous_end_seconds if self._recorder is not None else 0.0
        facts = self._recorder.facts_between_steps() if self._recorder is not None else {}
        self.add_phase(TEARDOWN, max(self._explained_until, last_step_ended), now(), facts)
        self._file.write(end_line(now(), self.steps, self._end_reason))
        self._file.flush()

    def failed(self, error: BaseException) -> None:
        """Write the outcome to the log and to SageMaker's failure file."""
        if not self.is_enabled or self._has_ended:
            return
        self.open()
        outcome = failure.classify(error, self._otherwise)
        place = failure.place_in_script(error) if self._otherwise == failure.USER_CODE_ERROR else ""
        full = "" if hasattr(error, "outcome") else full_disk_text(error)
        message = failure.describe(error, process.this_process().rank, place + full)
        self._has_ended = True
        if outcome != failure.STOPPED_BY_USER:
            failure.report_failure(outcome, message)
        try:
            self.error(outcome, message)
        except OSError as full_disk:
            print("{} could not be written: {}".format(self._file.path, full_disk), file=sys.stderr)  # noqa: T201

    def open(self, facts: Optional[Dict[str, Any]] = None) -> None:
        """Write the environment line, once, and arrange for the last one."""
        if not self.is_enabled:
            return
        # A thread that ends the process at a SIGTERM may write the error while this one opens.
        with self._opening:
            if not self._is_open:
                self._is_open = True
                self._begin(facts)

    def _begin(self, facts: Optional[Dict[str, Any]]) -> None:
        this = process.this_process()
        self._file = StepLogFile(log_path(self._directory, this.job_name, this.rank, self._began))
        self._host_load = HostLoadMeter()
        facts = environment_facts() if facts is None else facts
        self._file.write(
            environment_line(
                now(),
                this.rank,
                this.world_size,
                this.host,
                facts,
                host_id=host_id(),
                launch=this.launch,
            )
        )
        for name, begin, end in process.phases_before(self._began):
            self._file.write(phase_line(name, begin, end))
        self._file.flush()
        atexit.register(self.close)
        failure.call_on_crash(self.failed)
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def _process_group(self) -> Dict[str, Any]:
        launched = process.launched_world_size()
        if launched == 1:
            return {}
        return (
            {PROCESS_GROUP: INDEPENDENT}
            if self._is_independent
            else require_process_group(launched)
        )

    def _abandon_step(self, error: BaseException, samples: Any) -> None:
        if self._recorder is not None:
            self._recorder.abandon()
            is_lack = failure.classify(
                error, self._otherwise
            ) == failure.OUT_OF_MEMORY and not is_on_device(samples)
            self._lacking = samples if is_lack else None

    def _leave_to_parent(self) -> None:
        self.is_enabled = False
        self._has_ended = True
        self._recorder = None

    def _name_divergence(self, steps: List[LoggedStep]) -> None:
        diverged = next(
            (step for step in steps if step.loss is not None and not math.isfinite(step.loss)), None
        )
        if diverged is not None:
            self._diverged("the loss of step {} is {}".format(diverged.step, diverged.loss))

    def _diverged(self, message: str) -> None:
        if not self._has_diverged:
            self._has_diverged = True
            self.error(failure.LOSS_DIVERGED, message)

    def _write_host_load(self, line: Optional[Dict[str, Any]]) -> None:
        if line is not None:
            self._file.write(line)

    def _write(self, line: Callable[..., Dict[str, Any]], *values: Any) -> None:
        if self.is_enabled:
            self.open()
            self._file.write(line(now(), *values))


def step_log_of_this_process() -> StepLogger:
    return StepLogger(os.environ.get(DIRECTORY_VARIABLE))
