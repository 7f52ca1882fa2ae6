"""The names of training jobs, from lab, suite, execution, owner (cell and trial, or shared job) and
attempt.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from traindyno.core.jobs.job import AttemptOwner, Job
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.suite import Run

JOB_NAME_CHARACTERS = 63
SUITE_NAME_CHARACTERS = 15
ATTEMPT_PART = re.compile(r"-a(?P<number>\d+)$")
EVENT_SOURCE = "aws.sagemaker"
DETAIL_TYPE = "SageMaker Training Job State Change"
ENDED_STATUSES = ("Completed", "Failed", "Stopped")


def attempt_job_name(owner: AttemptOwner, suite_name: str, *, attempt: int, lab: str) -> str:
    """The same for a repeated call, so that it can't start a second job; another attempt has
    another name. The suite's part is shorter where the owner's and the lab's are long.
    """
    match owner:
        case Run():
            part = f"{owner.cell.cell_id}-t{owner.trial}"
        case Job():
            part = owner.job_id
        case DataPreparation():
            part = f"{owner.short_key}-{'copy' if owner.stages_model else 'data'}"
    end = f"{part}-a{attempt}"
    left = JOB_NAME_CHARACTERS - len(job_name_prefix(owner.execution_id, "", lab=lab)) - len(end)
    return f"{job_name_prefix(owner.execution_id, suite_name[:left], lab=lab)}{end}"


def job_name_prefix(execution_id: str, suite_name: str, *, lab: str) -> str:
    """The prefix of the names of all jobs of one execution."""
    suite_part = suite_name[:SUITE_NAME_CHARACTERS].rstrip("-")
    return f"{jobs_prefix(lab)}{suite_part}-{execution_digest(execution_id)}-"


def execution_digest(execution_id: str) -> str:
    """What the names of an execution's jobs say of it."""
    return hashlib.sha1(execution_id.encode(), usedforsecurity=False).hexdigest()[:8]


def attempt_number(job_name: str) -> int | None:
    """The number with which the name of each of the lab's jobs ends; None for a name of another
    form.
    """
    match = ATTEMPT_PART.search(job_name)
    return int(match["number"]) if match else None


def job_name_of(request: Mapping[str, Any]) -> str:
    name: str = request["TrainingJobName"]
    return name


def ended_jobs_of(lab: str) -> dict[str, Any]:
    """The ``detail`` pattern of a rule that matches the ends of one lab's jobs."""
    return {
        "TrainingJobName": [{"prefix": jobs_prefix(lab)}],
        "TrainingJobStatus": [*ENDED_STATUSES],
    }


def job_name_in(event: Mapping[str, Any]) -> str:
    name: str = event["detail"]["TrainingJobName"]
    return name
