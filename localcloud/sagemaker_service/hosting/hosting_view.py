"""Converts records of hosting to what the API and EventBridge show."""

import re
from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.hosting.hosting import (
    Endpoint,
    EndpointConfig,
    EndpointStatus,
    HostedModel,
    TransformJob,
)
from localcloud.sagemaker_service.jobs.job_view import event, without_none

ENDPOINT_CHANGE = "SageMaker Endpoint State Change"
TRANSFORM_CHANGE = "SageMaker Transform Job State Change"
TRANSFORM_TIMES = {"TransformStartTime": "started_ms", "TransformEndTime": "ended_ms"}


def described_model(model: HostedModel) -> dict[str, Any]:
    return {**model.request, "ModelArn": model.arn, "CreationTime": model.created_ms / 1000}


def described_config(config: EndpointConfig) -> dict[str, Any]:
    return {**config.request, "EndpointConfigArn": config.arn, "CreationTime": config.created_ms / 1000}


def described_endpoint(endpoint: Endpoint, config: EndpointConfig | None) -> dict[str, Any]:
    variants = config.request["ProductionVariants"] if config else ()
    view = {
        "EndpointName": endpoint.name,
        "EndpointArn": endpoint.arn,
        "EndpointConfigName": endpoint.request["EndpointConfigName"],
        "EndpointStatus": endpoint.status,
        "CreationTime": endpoint.created_ms / 1000,
        "LastModifiedTime": endpoint.modified_ms / 1000,
        **without_none(FailureReason=endpoint.failure_reason),
    }
    if variants and endpoint.status is EndpointStatus.IN_SERVICE:
        view["ProductionVariants"] = [_variant(variant) for variant in variants]
    return view


def _variant(variant: Mapping[str, Any]) -> dict[str, Any]:
    weight = variant.get("InitialVariantWeight", 1.0)
    view = {"VariantName": variant["VariantName"], "CurrentWeight": weight, "DesiredWeight": weight}
    if "ServerlessConfig" in variant:
        return {**view, "CurrentServerlessConfig": variant["ServerlessConfig"]}
    count = variant.get("InitialInstanceCount", 1)
    return {**view, "CurrentInstanceCount": count, "DesiredInstanceCount": count}


def described_transform(job: TransformJob) -> dict[str, Any]:
    times = {name: getattr(job, field) for name, field in TRANSFORM_TIMES.items()}
    return {
        **job.request,
        "TransformJobArn": job.arn,
        "TransformJobStatus": job.status,
        "CreationTime": job.created_ms / 1000,
        **{name: value / 1000 for name, value in times.items() if value is not None},
        **without_none(FailureReason=job.failure_reason),
    }


def endpoint_event(endpoint: Endpoint, *, account_id: str, region: str) -> dict[str, Any]:
    """The EventBridge event. It writes the status ``InService`` of the API as ``IN_SERVICE``."""
    detail = {
        "EndpointName": endpoint.name,
        "EndpointArn": endpoint.arn,
        "EndpointConfigName": endpoint.request["EndpointConfigName"],
        "EndpointStatus": re.sub(r"(?<!^)(?=[A-Z])", "_", endpoint.status).upper(),
        "CreationTime": endpoint.created_ms,
        "LastModifiedTime": endpoint.modified_ms,
        "Tags": dict(endpoint.tags),
        **without_none(FailureReason=endpoint.failure_reason),
    }
    return event(
        ENDPOINT_CHANGE,
        detail,
        arn=endpoint.arn,
        changed_ms=endpoint.modified_ms,
        account_id=account_id,
        region=region,
    )


def transform_event(job: TransformJob, *, account_id: str, region: str) -> dict[str, Any]:
    detail = {
        **{name: value for name, value in job.request.items() if name not in TRANSFORM_TIMES},
        "TransformJobArn": job.arn,
        "TransformJobStatus": job.status,
        "CreationTime": job.created_ms,
        "Tags": dict(job.tags),
        **without_none(
            TransformStartTime=job.started_ms, TransformEndTime=job.ended_ms, FailureReason=job.failure_reason
        ),
    }
    return event(
        TRANSFORM_CHANGE, detail, arn=job.arn, changed_ms=job.modified_ms, account_id=account_id, region=region
    )
