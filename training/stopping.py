"""Ends a run early when its mean step time is known well enough: the first rank decides, the others follow."""

from collections.abc import Iterable

from traindyno.callbacks import StepLogger
from traindyno.callbacks.recorder import RecordedStep
from traindyno.core.measurement.series import mean_half_width
from traindyno.core.measurement.steady_state import find_steady_state
from traindyno.core.suite.suite import Measurement
from training.divergence import refuse_divergence
from training.process_group import decided_by_first_rank

FIRST_CHECK_STEPS = 30
GROWTH = 1.25  # each check waits for the device and for all ranks, so they become rarer


class Stopping:
    def __init__(self, measurement: Measurement) -> None:
        self._target = measurement.stop_when.relative_half_width if measurement.stop_when else None
        self._warmup_steps = measurement.warmup_steps
        self._step_seconds: list[float] = []
        self._next_check = FIRST_CHECK_STEPS

    def observe(self, steps: Iterable[RecordedStep]) -> None:
        refuse_divergence(steps)
        if self._target is not None:
            self._step_seconds += [step.end - step.begin for step in steps]

    def should_stop(self, step_log: StepLogger) -> bool:
        if self._target is None or step_log.steps < self._next_check:
            return False
        self._next_check = int(self._next_check * GROWTH)
        step_log.close_window()
        return decided_by_first_rank(self._is_known_well_enough(self._target))

    def _is_known_well_enough(self, target: float) -> bool:
        steady = find_steady_state(self._step_seconds, warmup_steps=self._warmup_steps)
        half_width = mean_half_width(self._step_seconds[steady.warmup_steps :])
        return steady.is_reached and half_width is not None and half_width <= target
