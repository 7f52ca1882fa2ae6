"""What the row of a finished run says of it: for progress displays, and for the plans of later
executions.
"""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.jobs.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """The time of all its jobs as if none had been shared. Unknown values are None.

    ``seconds``: from the creation of each job to its end, billed or not. The overhead is the part
    of the measured job's time that a job has once, however many runs it carries.
    """

    billable_seconds: float | None
    seconds: float
    overhead_seconds: float | None = None
    overhead_billable_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Summary of a run. Unknown values are None. Projected time and cost are of the whole
    workload.
    """

    execution_id: str
    cell_id: str
    cell_label: str
    trial: int
    outcome: Outcome
    message: str | None = None
    attempts: int
    instance: str
    time: RunTime
    samples_per_second: float | None = None
    mean_step_seconds: float | None = None
    #: Number of steps from the first measured one to the last.
    steps: int | None = None
    projected_seconds: float | None = None
    projected_usd: Decimal | None = None
    is_simulated: bool
    is_contended: bool = False
    #: The machines, all of them as one text.
    hosts: str | None = None
    data_wait_share: float | None = None
