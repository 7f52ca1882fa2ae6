"""Ends a run whose loss is no number any more: its speed would be measured on nonsense."""

import math
from collections.abc import Iterable

from traindyno.callbacks.recorder import RecordedStep
from training.errors import LossDiverged


def refuse_divergence(steps: Iterable[RecordedStep]) -> None:
    for step in steps:
        if step.loss is not None and not math.isfinite(step.loss):
            raise LossDiverged(f"the loss of step {step.step} is {step.loss}")
