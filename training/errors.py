"""Errors of a run that a person can act on; ``outcome`` is how the run is recorded."""

from traindyno.core.errors import TraindynoError
from traindyno.core.outcome import Outcome


class RunError(TraindynoError):
    outcome: Outcome


class WorkloadError(RunError):
    """Data, model, tokenizer or settings don't fit together; the message names what was asked and what was found."""

    outcome = Outcome.USER_CODE_ERROR


class LossDiverged(RunError):
    outcome = Outcome.LOSS_DIVERGED


class PeerFailed(RunError):
    """Another process of the job ended first."""

    outcome = Outcome.INTERNAL_ERROR
