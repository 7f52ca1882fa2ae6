"""Event: a training job has ended. Records the outcome of its run or preparation."""

import time
from typing import Any

from traindyno.core.jobs.job import owner_id
from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.finish_run import finish_run
from traindyno.lab.services import connect
from traindyno.lab.use_case import use_case
from traindyno.sagemaker.job_names import job_name_in


def handle(event: dict[str, Any], _context: object) -> None:
    environment = read_environment(BucketEnvironment)
    job_name = job_name_in(event)
    with use_case("FinishRun", job=job_name) as line:
        row = finish_run(job_name, services=connect(environment), now=time.time())
        if row and row.end:
            ended = row.end.outcome or row.end.error
            line.update(execution=row.owner.execution_id, run=owner_id(row.owner), ended=ended)
