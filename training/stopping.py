"""Ends a run early: when its mean step time is known precisely enough, or when its loss is not finite."""

import math
from collections.abc import Iterable

from traindyno.callbacks import StepLogger
from traindyno.callbacks.recorder import RecordedStep
from traindyno.core.measurement.stop_rule import is_known_well_enough, is_look_due
from traindyno.core.suite.suite import Measurement
from training.errors import LossDiverged
from training.process_group import decided_by_first_rank


class Stopping:
    """The first rank decides, the others follow."""

    def __init__(self, measurement: Measurement) -> None:
        self._target = measurement.stop_when.relative_half_width if measurement.stop_when else None
        self._warmup_steps = measurement.warmup_steps
        self._step_seconds: list[float] = []
        self._previous_end: float | None = None
        self._looks = 0

    def observe(self, steps: Iterable[RecordedStep]) -> None:
        """Time between two steps, such as a checkpoint's, counts to the later one."""
        refuse_divergence(steps)
        if self._target is None:
            return
        for step in steps:
            begin = step.begin if self._previous_end is None else self._previous_end
            self._step_seconds.append(step.end - begin)
            self._previous_end = step.end

    def should_stop(self, step_log: StepLogger) -> bool:
        if self._target is None or not is_look_due(step_log.steps_of_this_process, self._looks):
            return False
        self._looks += 1
        step_log.close_window()
        return decided_by_first_rank(
            is_known_well_enough(
                self._step_seconds,
                relative_half_width=self._target,
                look=self._looks,
                warmup_steps=self._warmup_steps,
            )
        )


def refuse_divergence(steps: Iterable[RecordedStep]) -> None:
    """Speed after this would be measured on meaningless numbers."""
    for step in steps:
        if step.loss is not None and not math.isfinite(step.loss):
            raise LossDiverged(f"the loss of step {step.step} is {step.loss}")
