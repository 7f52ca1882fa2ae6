"""Answers ListTrainingJobs with its filters, order and pages."""

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from localcloud.sagemaker_service.api_error import validation_error
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.job_view import summary

FILTERS = {
    "CreationTimeAfter": "created_ms > ?",
    "CreationTimeBefore": "created_ms < ?",
    "LastModifiedTimeAfter": "modified_ms > ?",
    "LastModifiedTimeBefore": "modified_ms < ?",
    "NameContains": "instr(name, ?) > 0",
    "StatusEquals": "status = ?",
    "WarmPoolStatusEquals": "warm_pool = ?",
}
SORT_COLUMNS = {"CreationTime": "created_ms", "Name": "name", "Status": "status"}


def list_jobs(store: JobStore, request: Mapping[str, Any]) -> dict[str, Any]:
    column = SORT_COLUMNS[request.get("SortBy", "CreationTime")]
    is_ascending = request.get("SortOrder", "Descending") == "Ascending"
    clauses, parameters = ["1 = 1"], list[object]()
    for member, clause in FILTERS.items():
        if member in request:
            clauses.append(clause)
            parameters.append(_epoch_ms(request[member]) if "Time" in member else request[member])
    if "NextToken" in request:
        clauses.append(f"({column}, name) {'>' if is_ascending else '<'} (?, ?)")
        parameters += _read_token(request["NextToken"])
    direction = "asc" if is_ascending else "desc"
    size = request.get("MaxResults", 10)
    jobs = store.select(" and ".join(clauses), parameters, f"{column} {direction}, name {direction}", size + 1)
    page: dict[str, Any] = {"TrainingJobSummaries": [summary(job) for job in jobs[:size]]}
    if len(jobs) > size:
        page["NextToken"] = _token(jobs[size - 1], column)
    return page


def _token(job: TrainingJob, column: str) -> str:
    place = {"created_ms": job.created_ms, "name": job.name, "status": job.status}[column]
    return base64.urlsafe_b64encode(json.dumps([place, job.name]).encode()).decode()


def _read_token(token: str) -> list[object]:
    try:
        place, name = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError, binascii.Error) as error:
        raise validation_error("Invalid NextToken") from error
    return [place, name]


def _epoch_ms(value: float | str) -> int:
    seconds = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value
    return round(seconds * 1000)
