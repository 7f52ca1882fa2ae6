"""Step logs from your own training script: ``from traindyno.callbacks import step_log``."""

from traindyno.callbacks.log import StepLog, step_log_of_this_process

step_log = step_log_of_this_process()

__all__ = ["StepLog", "step_log"]
