"""What one run used of a job that carried several."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShare:
    """Seconds are wall clock in which the job trained; downloads and uploads are included.

    The run's part of the bill is its attempt's ``billable_seconds``: those of all runs add up to the job's.
    """

    #: From the barrier at which the run began to the end of its clean-up.
    own_seconds: float
    #: Of the job before its first run began: data, image, toolkit. A job of this run alone would have them too.
    start_seconds: float
    #: Of the job after its last run ended.
    end_seconds: float
    #: Its place among the runs that share the bill, from 1; 0 if it was billed nothing.
    place: int
    #: How many runs share the bill: those that began; if none began, all that the job was to run.
    runs: int
    has_begun: bool = True
    #: Whether the end of the job ended this run too. A fault of the service counts for this run only. If no run
    #: began, the first one's turn had come.
    was_in_progress: bool = False

    @property
    def alone_seconds(self) -> float:
        """The time for which a job of this run alone would train."""
        return self.start_seconds + self.own_seconds + self.end_seconds


def divide_whole(total: int, weights: Sequence[int]) -> list[int]:
    """Whole parts of ``total`` in proportion to the weights, or equal ones if all are 0, by the largest remainder."""
    used = weights if any(weights) else [1] * len(weights)
    whole = sum(used)
    parts = [total * weight // whole for weight in used]
    by_remainder = sorted(range(len(used)), key=lambda index: -(total * used[index] % whole))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    return parts


def divide_seconds(seconds: float, weights: Sequence[int]) -> list[float]:
    """In whole milliseconds."""
    return [part / 1000 for part in divide_whole(round(seconds * 1000), weights)]
