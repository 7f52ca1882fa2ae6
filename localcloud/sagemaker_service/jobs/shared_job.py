"""A job that several runs share: its document, and what a job of each run alone would be."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from localcloud.sagemaker_service.jobs.job import TrainingJob
from traindyno.core.jobs.journal_format import DOCUMENT_VARIABLE


def is_shared(job: TrainingJob) -> bool:
    return DOCUMENT_VARIABLE in job.request.get("Environment", {})


def jobs_of_runs(job: TrainingJob, document: Mapping[str, Any]) -> dict[str, TrainingJob]:
    """Run id → the job of that run alone, in the order in which they run."""
    return {run["run_id"]: _alone(job, run) for run in document["runs"]}


def _alone(job: TrainingJob, run: Mapping[str, Any]) -> TrainingJob:
    own = {name: json.dumps(value) for name, value in run["hyperparameters"].items()}
    return replace(job, name=f"{job.name}/{run['run_id']}", request={**job.request, "HyperParameters": own})
