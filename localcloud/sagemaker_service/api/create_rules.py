"""Refuses requests of CreateTrainingJob that its model allows: wrong combinations, and features not offered here."""

from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.api_error import validation_error


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
    given = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if len(given) != 1:
        raise validation_error("You must provide exactly one of TrainingImage and AlgorithmName")


def _check_resources(request: Mapping[str, Any]) -> None:
    resources = request.get("ResourceConfig")
    if resources is None:
        raise validation_error("ResourceConfig is required")
    for name in ("InstanceGroups", "InstancePreferences"):
        if resources.get(name):
            raise validation_error(f"{name}: this local service offers jobs on instances of one type only")
    if not resources.get("InstanceType") or not resources.get("InstanceCount"):
        raise validation_error("ResourceConfig must have InstanceType and InstanceCount")
    if resources.get("KeepAlivePeriodInSeconds") and request.get("EnableManagedSpotTraining"):
        raise validation_error("KeepAlivePeriodInSeconds is not supported with EnableManagedSpotTraining")


def _check_stopping(request: Mapping[str, Any]) -> None:
    stopping = request.get("StoppingCondition") or {}
    longest_wait = stopping.get("MaxWaitTimeInSeconds")
    if request.get("EnableManagedSpotTraining"):
        if longest_wait is None or longest_wait < stopping.get("MaxRuntimeInSeconds", 86400):
            raise validation_error(
                "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds"
            )
    elif longest_wait is not None:
        raise validation_error("MaxWaitTimeInSeconds above 0 is only allowed with EnableManagedSpotTraining")


def _check_channel(channel: Mapping[str, Any]) -> None:
    name = channel["ChannelName"]
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        raise validation_error(f"Channel {name}: this local service reads S3DataSource only")
    if source["S3DataType"] != "S3Prefix":
        raise validation_error(
            f"Channel {name}: S3DataType {source['S3DataType']} is not offered; this local service reads S3Prefix"
        )
    for member in ("CompressionType", "RecordWrapperType"):
        if channel.get(member, "None") != "None":
            raise validation_error(
                f"Channel {name}: {member} {channel[member]} is not offered; this local service reads {member} None"
            )
    if channel.get("InputMode") == "Pipe":
        raise validation_error(
            f"Channel {name}: InputMode Pipe is not offered; this local service offers File and FastFile"
        )
