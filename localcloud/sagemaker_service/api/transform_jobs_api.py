"""Answers SageMaker's operations on batch transform jobs."""

from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.api.hosting_api import check_local
from localcloud.sagemaker_service.api.hosting_records import HostingRecords
from localcloud.sagemaker_service.api.operations import Operation
from localcloud.sagemaker_service.api_error import ApiError, validation_error
from localcloud.sagemaker_service.hosting.hosting import HostedModel, TransformJob, TransformStatus
from localcloud.sagemaker_service.hosting.hosting_view import described_transform
from localcloud.sagemaker_service.hosting.transform_engine import ENDED, TransformEngine

OFFERED_INPUTS = {"S3DataType": ["S3Prefix"], "CompressionType": ["None"], "SplitType": ["None", "Line"]}


class TransformJobsApi:
    def __init__(self, records: HostingRecords, engine: TransformEngine) -> None:
        self._records = records
        self._store = records.store
        self._engine = engine

    def operations(self) -> dict[str, Operation]:
        return {
            "CreateTransformJob": self._create,
            "DescribeTransformJob": lambda request: described_transform(self._job(request)),
            "StopTransformJob": self._stop,
        }

    def _create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._records.existing(HostedModel, request["ModelName"])
        check_local(request["TransformResources"]["InstanceType"])
        check_input(request["TransformInput"])
        if request.get("DataProcessing"):
            raise validation_error("DataProcessing is not offered by this local service")
        name = request["TransformJobName"]
        if self._store.get(TransformJob, name) is not None:
            raise ApiError("ResourceInUse", f"Job name must be unique within an AWS account and region: {name}")
        new = self._records.new(TransformJob, name, request)
        job = TransformJob(**new, status=TransformStatus.IN_PROGRESS, modified_ms=new["created_ms"])
        self._store.put(job)
        self._engine.run(job.name)
        return {"TransformJobArn": job.arn}

    def _stop(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        job = self._job(request)
        if job.status in ENDED:
            raise validation_error(f"The request was rejected because the transform job is in status {job.status}.")
        self._engine.stop(job.name)
        return {}

    def _job(self, request: Mapping[str, Any]) -> TransformJob:
        job = self._store.get(TransformJob, request["TransformJobName"])
        if job is None:
            raise validation_error("Could not find requested job with name: " + request["TransformJobName"])
        return job


def check_input(given: Mapping[str, Any]) -> None:
    values = given | given["DataSource"]["S3DataSource"]
    for member, offered in OFFERED_INPUTS.items():
        value = values.get(member, "None")
        if value not in offered:
            raise validation_error(
                f"TransformInput: {member} {value} is not offered; this local service reads {' and '.join(offered)}"
            )
