"""What one run used of a job that carried several."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShare:
    """Seconds are of the job's clock, of each instance. Shares of one job add up to what it was billed."""

    #: From the barrier at which the run began to the end of its clean-up.
    own_seconds: float
    #: Of the job before its first run began: image, toolkit, data. A job of this run alone would have them too.
    start_seconds: float
    #: Of the job after its last run ended.
    end_seconds: float
    #: The run's part of the job's billable seconds, in whole milliseconds.
    billed_seconds: float
    #: Its place among the runs that began in the job, from 1.
    place: int
    #: How many runs began in the job.
    runs: int
