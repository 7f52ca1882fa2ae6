"""The fields of a request from the lab's settings: network, keys, volumes, and the code of an isolated container."""

from collections.abc import Iterable
from typing import Any

from traindyno.core.instances.instance_types import has_instance_storage
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.channels import channel
from traindyno.sagemaker.job_settings import JobSettings, LabJobs
from traindyno.sagemaker.launcher import CODE_CHANNEL, find_source


def network(jobs: LabJobs) -> dict[str, Any]:
    """Fields of the request itself."""
    fields: dict[str, Any] = {}
    if jobs.subnet_ids:
        fields["VpcConfig"] = {"Subnets": [*jobs.subnet_ids], "SecurityGroupIds": [*jobs.security_group_ids]}
    if jobs.encrypts_traffic:
        fields["EnableInterContainerTrafficEncryption"] = True
    if jobs.isolates_network:
        fields["EnableNetworkIsolation"] = True
    return fields


def volume(jobs: LabJobs, instance_types: Iterable[str], *, size_gb: int | None = None) -> dict[str, Any]:
    """Fields of ResourceConfig; ``size_gb`` of None is the lab's. SageMaker refuses a volume key for types with
    instance storage.
    """
    fields: dict[str, Any] = {"VolumeSizeInGB": size_gb or jobs.volume_size_gb}
    if jobs.volume_key_arn and not any(map(has_instance_storage, instance_types)):
        fields["VolumeKmsKeyId"] = jobs.volume_key_arn
    return fields


def output_key(jobs: LabJobs) -> dict[str, str]:
    """Fields of OutputDataConfig."""
    return {"KmsKeyId": jobs.output_key_arn} if jobs.output_key_arn else {}


def code_channels(suite: Suite, settings: JobSettings) -> list[dict[str, Any]]:
    """An isolated container can't load its code from S3, so a channel contains it."""
    if not settings.jobs.isolates_network:
        return []
    return [channel(CODE_CHANNEL, find_source(suite, settings), InputMode.FILE)]
