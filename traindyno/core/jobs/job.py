"""A training job with the runs that it carries, one after another."""

from dataclasses import dataclass

from traindyno.core.suite.suite import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All attempts of a job have its id; a later one carries the runs that have not ended."""

    execution_id: str
    #: Unique within the execution. A job of one run has the id of that run.
    job_id: str
    #: In the order in which they run.
    runs: tuple[Run, ...]

    @property
    def is_shared(self) -> bool:
        """Whether a parent process starts the runs; a single run is started by the container's own launcher."""
        return len(self.runs) > 1
