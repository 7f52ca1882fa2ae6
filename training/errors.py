"""Errors of a run that its user can correct; ``outcome`` is how the run is recorded."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from traindyno.callbacks.full_disk import is_disk_full
from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.outcome import Outcome

# transformers names the argument that allows it; ours is a setting of the suite.
FOREIGN_CODE = "`trust_remote_code=True`"


class RunError(TraindynoError):
    outcome: Outcome


class WorkloadError(RunError):
    """Data, model, tokenizer or settings don't fit together.

    The message names what was asked and what was found.
    """

    outcome = Outcome.USER_CODE_ERROR


class NeedsForeignCode(WorkloadError):
    """A model or a tokenizer can be loaded only by Python code that is stored with it."""


class MissingFromImage(RunError):
    """A setting needs a program or a library that the job's environment lacks; the message says
    where it is found.
    """

    outcome = Outcome.IMAGE_ERROR


class LossDiverged(RunError):
    outcome = Outcome.LOSS_DIVERGED


class PeerFailed(RunError):
    """Another process of the job failed first; its outcome is the run's."""

    def __init__(self, outcome: str, message: str) -> None:
        self.outcome = Outcome(outcome)
        super().__init__(message)


class RunStopped(RunError):
    """The run was stopped from outside.

    SageMaker's job description shows if a person or a time limit did it.
    """

    outcome = Outcome.STOPPED_BY_USER


@contextmanager
def explained(what: str, *also: type[Exception]) -> Iterator[None]:
    """Explains errors of transformers: OSError for what it does not find and ValueError for what it
    does not know.
    """
    failures: tuple[type[Exception], ...] = (OSError, ValueError, *also)
    try:
        yield
    except failures as error:
        if FOREIGN_CODE in str(error):
            raise NeedsForeignCode(
                f"{what} needs Python code that is stored with it, which does not run unasked; "
                "expected a model type and a tokenizer of transformers, or "
                "workload.trust_remote_code: true, so that the suite's jobs run it"
            ) from error
        raise WorkloadError(
            f"{what} can't be loaded: {error}; expected a Hub id, an S3 prefix or a folder that "
            "transformers saved"
        ) from error


@contextmanager
def volume_of(what: str, folder: Path) -> Iterator[None]:
    """If the disk is full, raises WorkloadError with the size of the disk of ``folder``, which
    exists.
    """
    try:
        yield
    except Exception as error:
        if not is_disk_full(error):
            raise
        raise too_small_volume(what, folder) from error


def too_small_volume(what: str, folder: Path, *, needed_bytes: int | None = None) -> WorkloadError:
    disk = shutil.disk_usage(folder)
    needed = "more" if needed_bytes is None else f"{needed_bytes / 1e9:,.1f} GB"
    return WorkloadError(
        f"{what} needs {needed}, and {disk.free / 1e9:,.1f} GB of the job's "
        f"{disk.total / 1e9:,.1f} GB volume are free; expected a larger job.volume_size_gb"
    )
