"""The step logs of a running job's first processes, and how many steps its runs have."""

import json
from collections.abc import Iterator
from pathlib import Path

from localcloud.sagemaker_service.host.container_tree import HostTree
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_work import read_work
from localcloud.sagemaker_service.jobs.shared_job import is_shared, jobs_of_runs
from traindyno.core.jobs.journal_format import CONTAINER_FOLDER, DOCUMENT_VARIABLE, FOLDER_VARIABLE, STEP_LOG
from traindyno.core.step_log.line import CONTAINER_DIRECTORY, DIRECTORY_VARIABLE

FIRST_PROCESS = "rank-00000.*.jsonl"


def find_step_logs(job: TrainingJob, tree: HostTree) -> Iterator[Path]:
    """Of the first process of its run, or of each of its runs; also those of its earlier starts."""
    given = job.request.get("Environment", {})
    if is_shared(job):
        folder = tree.host_path(given.get(FOLDER_VARIABLE, CONTAINER_FOLDER))
        return folder.glob(f"*/{STEP_LOG}/{job.name}/{FIRST_PROCESS}")
    return (tree.host_path(given.get(DIRECTORY_VARIABLE, CONTAINER_DIRECTORY)) / job.name).glob(FIRST_PROCESS)


def count_steps(job: TrainingJob, tree: HostTree) -> int:
    """Steps of its run, or of all its runs, by the document that was downloaded."""
    if not is_shared(job):
        return read_work(job).steps
    document = json.loads(tree.host_path(job.request["Environment"][DOCUMENT_VARIABLE]).read_text(encoding="utf-8"))
    return sum(read_work(alone).steps for alone in jobs_of_runs(job, document).values())
