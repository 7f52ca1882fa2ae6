"""Step logs from your own training script: ``from traindyno.callbacks import step_log``."""

from traindyno.callbacks.log import StepLogger, step_log_of_this_process

step_log = step_log_of_this_process()

__all__ = ["StepLogger", "step_log"]
