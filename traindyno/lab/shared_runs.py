"""The runs of a shared job: which have ended, what follows the end of an attempt, and the attempts
of each run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal import JobJournal, ended_runs, read_job_journal
from traindyno.core.jobs.run_attempts import JobProgress, attempts_of_run
from traindyno.core.s3_keys import checkpoints_prefix
from traindyno.core.suite.runs import run_id_of
from traindyno.figures.in_job.run_scatter import run_scatter
from traindyno.sagemaker.failure_reasons import outcome_of
from traindyno.store.attempts import AttemptRow
from traindyno.store.results_bucket import ResultsBucket, read_shared_job_files


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRuns:
    """The runs of a job, as its attempts have left them.

    ``host_count`` counts the hosts of each attempt. ``contents`` are of its journals and ends,
    ``sizes`` of all files below its checkpoint prefix.
    """

    job: Job
    host_count: int
    contents: Mapping[str, bytes]
    sizes: Mapping[str, int]
    _journals: dict[str, JobJournal] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def ended(self) -> frozenset[str]:
        """The runs that have ended in any attempt, those that the job's parent process added
        too.
        """
        return ended_runs(self.contents, host_count=self.host_count, sizes=self.sizes)

    @property
    def left(self) -> tuple[str, ...]:
        """The runs that have not ended in any attempt, in their order."""
        ended = self.ended
        return tuple(run.run_id for run in self.job.runs if run.run_id not in ended)

    def journal(self, job_name: str) -> JobJournal:
        """Read once, because each journal compares checksums."""
        if job_name not in self._journals:
            self._journals[job_name] = read_job_journal(
                self.contents, job_name=job_name, host_count=self.host_count, sizes=self.sizes
            )
        return self._journals[job_name]

    def progress(self, job_name: str) -> JobProgress:
        journal = self.journal(job_name)
        return JobProgress(
            left=self.left,
            runs=len(self.job.runs),
            began=journal.has_worked,
            advanced=bool(journal.ends),
        )

    def attempts_of(self, run_id: str, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
        """What the run used of the job's attempts."""
        passes = run_scatter(self.job.settings.instance).passes
        again = {
            run_id_of(run.cell.cell_id, 1 + number)
            for run in self.job.runs
            for number in range(1, 1 + passes)
        } & self.ended
        return attempts_of_run(
            run_id,
            [(attempt, self.journal(attempt.job_name)) for attempt in attempts],
            planned=list(dict.fromkeys([*(run.run_id for run in self.job.runs), *sorted(again)])),
            outcome_of=outcome_of,
        )

    def deciding(self, run_id: str, attempts: Sequence[Attempt]) -> Attempt | None:
        """The latest of its attempts in which the run ended: if its end reached S3 late, a later
        one has begun it again for nothing. Else the latest.
        """
        ended = [attempt for attempt in attempts if run_id in self.journal(attempt.job_name).ends]
        return (*attempts[-1:], *ended)[-1] if attempts else None

    def failed_host(self, run_id: str, attempt: Attempt | None) -> str | None:
        """The host on which the run failed in this attempt, else the first one; None if it did not
        end there.
        """
        end = self.journal(attempt.job_name).ends.get(run_id) if attempt else None
        return end.host if end else None


def shared_runs_of(row: AttemptRow, bucket: ResultsBucket) -> SharedRuns | None:
    """None if the attempt's job carries no other run."""
    if not isinstance(row.owner, Job):
        return None
    job = row.owner
    prefix = checkpoints_prefix(row.owner.execution_id, row.owner.job_id)
    sizes = {key.removeprefix(prefix): size for key, size in bucket.list_sizes(prefix)}
    contents = read_shared_job_files(prefix, sizes, bucket)
    return SharedRuns(job=job, host_count=row.instance_count, contents=contents, sizes=sizes)
