"""Ends a run early: at its goal's target, when its mean step time is known, or when its loss is not finite."""

import math
from collections.abc import Iterable, Mapping

from traindyno.callbacks import StepLogger
from traindyno.core.measurement.stop_rule import is_known_well_enough, is_look_due
from traindyno.core.step_log.line import RATE_KNOWN, TARGET_REACHED, LoggedStep
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.suite.suite import Measurement
from training.errors import LossDiverged
from training.process.process_group import decided_by_first_rank


class Stopping:
    """The first rank decides, the others follow. At the quality ``target`` the run has done its work."""

    def __init__(self, measurement: Measurement, target: QualityTarget | None = None) -> None:
        self._target = target
        self._is_target_reached = False
        self._half_width = measurement.stop_when.relative_half_width if measurement.stop_when else None
        self._warmup_steps = measurement.warmup_steps
        self._step_seconds: list[float] = []
        self._previous_end: float | None = None
        self._looks = 0

    def observe(self, steps: Iterable[LoggedStep]) -> None:
        """Counts the time between two steps, such as that of a checkpoint, to the later step."""
        for step in steps:
            if step.loss is not None and not math.isfinite(step.loss):  # the speed would be that of meaningless numbers
                raise LossDiverged(f"the loss of step {step.step} is {step.loss}")
        if self._half_width is None:
            return
        for step in steps:
            begin = step.begin if self._previous_end is None else self._previous_end
            self._step_seconds.append(step.end - begin)
            self._previous_end = step.end

    def observe_evaluation(self, metrics: Mapping[str, float]) -> None:
        """All ranks call it after each evaluation."""
        if self._target is not None:
            value = metrics[self._target.quality.value]
            self._is_target_reached = decided_by_first_rank(self._target.is_reached(value))

    def should_stop(self, step_log: StepLogger) -> bool:
        reason = TARGET_REACHED if self._is_target_reached else RATE_KNOWN if self._is_rate_known(step_log) else None
        if reason is not None:
            step_log.ends_early(reason)
        return reason is not None

    def _is_rate_known(self, step_log: StepLogger) -> bool:
        if self._half_width is None or not is_look_due(step_log.steps_of_this_process, self._looks):
            return False
        self._looks += 1
        step_log.close_window()
        return decided_by_first_rank(
            is_known_well_enough(
                self._step_seconds,
                relative_half_width=self._half_width,
                look=self._looks,
                warmup_steps=self._warmup_steps,
            )
        )
