"""Which runs of a simulated shared job are not started again, because earlier jobs died while they were in progress."""

from collections import Counter
from collections.abc import Mapping

from localcloud.sagemaker_service.jobs.job import TrainingJob
from traindyno.core.jobs.host_journal import read_host_journal
from traindyno.core.jobs.job_journal import JobJournal
from traindyno.core.jobs.journal_format import MOST_DEATHS


def doomed_runs(journals: Mapping[str, bytes], job: TrainingJob) -> tuple[str, ...]:
    """``journals``: of all attempts, by their keys. Simulated hosts write the same: the first one's tell."""
    deaths: Counter[str] = Counter()
    for key, contents in sorted(journals.items()):
        _, job_name, host = key.split("/")
        if host == f"{job.hosts[0]}.jsonl" and job_name != job.name:
            deaths.update(_in_progress(read_host_journal(job_name, key, contents, [])))
    return tuple(sorted(run_id for run_id, count in deaths.items() if count >= MOST_DEATHS))


def _in_progress(journal: JobJournal) -> list[str]:
    """The run that a job's death cut off, of those that its last session began."""
    last = journal.began[-1:] if journal.end_seconds is None else ()
    return [run_id for run_id in last if run_id not in journal.spent_seconds and run_id not in journal.left]
