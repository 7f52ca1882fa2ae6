"""Answers SageMaker's operations on training jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from localcloud.environment import ACCOUNT, REGION
from localcloud.sagemaker_service.api_error import (
    ApiError,
    Operation,
    tag_list,
    tags_of,
    validation_error,
)
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.jobs.job import (
    TERMINAL,
    Engine,
    SecondaryStatus,
    Status,
    TrainingJob,
    ended,
    moved,
    new_job,
)
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.job_view import described, summary
from localcloud.sagemaker_service.jobs.quota_table import QuotaTable

FILTERS = {
    "NameContains": "instr(name, ?) > 0",
    "StatusEquals": "status = ?",
    "WarmPoolStatusEquals": "? is null",  # no job keeps its instances
}
PAGING = {"NextToken", "MaxResults", "SortBy", "SortOrder"}
ARN_PREFIX = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/"
SIMULATED_TAG = "traindyno:simulated"


def check_combination(request: Mapping[str, Any]) -> None:
    _check_algorithm(request)
    _check_resources(request)
    _check_stopping(request)
    for channel in request.get("InputDataConfig", ()):
        _check_channel(channel)


def _check_algorithm(request: Mapping[str, Any]) -> None:
    algorithm = request.get("AlgorithmSpecification")
    if algorithm is None:
        raise validation_error("AlgorithmSpecification is required")
    images = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if len(images) != 1:
        raise validation_error("You must provide exactly one of TrainingImage and AlgorithmName")


def _check_resources(request: Mapping[str, Any]) -> None:
    resources = request.get("ResourceConfig")
    if resources is None:
        raise validation_error("ResourceConfig is required")
    for name in ("InstanceGroups", "InstancePreferences"):
        if resources.get(name):
            raise validation_error(
                f"{name}: this local service offers jobs on instances of one type only"
            )
    if not resources.get("InstanceType") or not resources.get("InstanceCount"):
        raise validation_error("ResourceConfig must have InstanceType and InstanceCount")
    if resources.get("KeepAlivePeriodInSeconds") and request.get("EnableManagedSpotTraining"):
        raise validation_error(
            "KeepAlivePeriodInSeconds is not supported with EnableManagedSpotTraining"
        )


def _check_stopping(request: Mapping[str, Any]) -> None:
    stopping = request.get("StoppingCondition") or {}
    longest_wait = stopping.get("MaxWaitTimeInSeconds")
    if request.get("EnableManagedSpotTraining"):
        if longest_wait is None or longest_wait < stopping.get("MaxRuntimeInSeconds", 86400):
            raise validation_error(
                "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to "
                "MaxRuntimeInSeconds"
            )
    elif longest_wait is not None:
        raise validation_error(
            "MaxWaitTimeInSeconds above 0 is only allowed with EnableManagedSpotTraining"
        )


def _check_channel(channel: Mapping[str, Any]) -> None:
    name = channel["ChannelName"]
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        raise validation_error(f"Channel {name}: this local service reads S3DataSource only")
    if source["S3DataType"] != "S3Prefix":
        raise validation_error(
            f"Channel {name}: S3DataType {source['S3DataType']} is not offered; this local service "
            "reads S3Prefix"
        )
    for member in ("CompressionType", "RecordWrapperType"):
        if channel.get(member, "None") != "None":
            raise validation_error(
                f"Channel {name}: {member} {channel[member]} is not offered; this local service "
                f"reads {member} None"
            )
    if channel.get("InputMode") == "Pipe":
        raise validation_error(
            f"Channel {name}: InputMode Pipe is not offered; this local service offers File and "
            "FastFile"
        )


def list_jobs(store: JobStore, request: Mapping[str, Any]) -> dict[str, Any]:
    if (
        request.keys() - FILTERS.keys() - PAGING
        or request.get("SortBy", "CreationTime") != "CreationTime"
    ):
        raise validation_error(
            f"this local service lists jobs by CreationTime, and filters by {', '.join(FILTERS)}"
        )
    is_ascending = request.get("SortOrder", "Descending") == "Ascending"
    clauses = ["1 = 1"]
    parameters = list[object]()
    for member, clause in FILTERS.items():
        if member in request:
            clauses.append(clause)
            parameters.append(request[member])
    if "NextToken" in request:
        clauses.append(f"(created_ms, name) {'>' if is_ascending else '<'} (?, ?)")
        created_ms, _, name = request["NextToken"].partition("/")
        if not created_ms.isdigit():
            raise validation_error("Invalid NextToken")
        parameters += [int(created_ms), name]
    direction = "asc" if is_ascending else "desc"
    size = request.get("MaxResults", 10)
    jobs = store.select(
        " and ".join(clauses), parameters, f"created_ms {direction}, name {direction}", size + 1
    )
    page: dict[str, Any] = {"TrainingJobSummaries": [summary(job) for job in jobs[:size]]}
    if len(jobs) > size:
        page["NextToken"] = f"{jobs[size - 1].created_ms}/{jobs[size - 1].name}"
    return page


class JobEngine(Protocol):
    def wake(self, name: str) -> None:
        """The job is new, or was changed from outside the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJobsApi:
    store: JobStore
    quotas: QuotaTable
    clocks: Mapping[Engine, Clock]
    engines: Mapping[Engine, JobEngine]
    engine_for: Callable[[str], Engine]

    def operations(self) -> dict[str, Operation]:
        return {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": lambda request: described(self._job(request)),
            "ListTrainingJobs": lambda request: list_jobs(self.store, request),
            "StopTrainingJob": self._stop,
            "ListTags": lambda request: tag_list(self._job_by_arn(request).tags),
        }

    def _create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        check_combination(request)
        arn = f"{ARN_PREFIX}{request['TrainingJobName']}"
        tags = tags_of(request)
        kept = {name: value for name, value in request.items() if name != "Tags"}
        engine = self.engine_for(request["ResourceConfig"]["InstanceType"])
        if engine is Engine.REPLAY:
            tags[SIMULATED_TAG] = "true"
        now_ms = self.clocks[engine].now_ms()
        job = new_job(kept, arn=arn, engine=engine, tags=tags, now_ms=now_ms)
        with self.quotas.admission(job):
            if not self.store.add(job):
                raise ApiError(
                    "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a "
                    f"training job with this name already exists ({arn})",
                )
        self.engines[engine].wake(job.name)
        return {"TrainingJobArn": arn}

    def _stop(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        job = self.store.change(self._job(request).name, self._asked_to_stop)
        self.engines[job.engine].wake(job.name)
        return {}

    def _asked_to_stop(self, job: TrainingJob) -> TrainingJob:
        if job.status in TERMINAL:
            raise validation_error(
                f"The request was rejected because the training job is in status {job.status}."
            )
        now_ms = self.clocks[job.engine].now_ms()
        stopping = moved(job, SecondaryStatus.STOPPING, now_ms=now_ms)
        stopping = replace(stopping, status=Status.STOPPING, stop_requested=True)
        return stopping if job.claimed else ended(stopping, SecondaryStatus.STOPPED, now_ms=now_ms)

    def _job(self, request: Mapping[str, Any]) -> TrainingJob:
        job = self.store.get(request["TrainingJobName"])
        if job is None:
            # botocore's model declares ResourceNotFound, but SageMaker gives this answer.
            raise validation_error("Requested resource not found.")
        return job

    def _job_by_arn(self, request: Mapping[str, Any]) -> TrainingJob:
        arn: str = request["ResourceArn"]
        if not arn.startswith(ARN_PREFIX):
            raise validation_error(
                f"{arn} has no tags here; this local service keeps tags of training jobs "
                f"({ARN_PREFIX}<name>)"
            )
        return self._job({"TrainingJobName": arn.removeprefix(ARN_PREFIX)})
