"""Domain errors. A class name here is also the ``ErrorEquals`` name in the state machine."""

from collections.abc import Sequence
from dataclasses import dataclass


class TraindynoError(Exception):
    """Root of every error that this project raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem at one place of a suite document; ``path``: for example
    ``matrix.instance_count[1]``.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class DocumentInvalid(TraindynoError):
    """A document is wrong; a person must edit it. Carries every problem, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SuiteInvalid(DocumentInvalid):
    """The suite document is wrong."""


class SuiteRefused(TraindynoError):
    """The suite is well formed but can't be run: over its cap, over a quota, or impossible."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


class PreparationFailed(TraindynoError):
    """The dataset could not be tokenised, so no run was started."""


class NextAttempt(TraindynoError):
    """This attempt has ended for a reason outside the run; the state machine waits and submits the
    next one.
    """


class CapacityUnavailable(NextAttempt):
    """AWS had no capacity for the requested instances."""


class ServiceFault(NextAttempt):
    """SageMaker failed the job because of its own error."""


class RunsLeft(NextAttempt):
    """A shared job, or the recording of its runs, has ended before all were done; the next attempt
    does the rest.
    """


class JobTimeUsed(NextAttempt):
    """The job was cut off, by its time limit or the service, and had advanced; the next attempt
    continues from its newest checkpoint.
    """


class SlotUnavailable(NextAttempt):
    """The account's limit is reached; capacity under it becomes free when another job ends."""


class Throttled(NextAttempt):
    """AWS asked for fewer requests per second."""


class StartLater(TraindynoError):
    """The next start slots are reserved by other jobs; ``at`` (epoch seconds) is the slot of this
    one.
    """

    def __init__(self, at: float) -> None:
        self.at = at
        super().__init__(f"its start slot is at {at:.0f}")
