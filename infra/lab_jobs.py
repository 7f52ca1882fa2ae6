"""The CDK context's settings of a lab's training jobs, and the permissions that they require."""

import re
from collections.abc import Iterator
from typing import Any

from constructs import Node

from infra.permissions import Grant
from traindyno.sagemaker.job_settings import LAB_JOBS_VARIABLE, LabJobs, write_lab_jobs


class CdkContext:
    def __init__(self, node: Node) -> None:
        self._values: dict[str, Any] = node.get_all_context()

    def try_get_context(self, name: str) -> Any:
        return self._values.get(name)

    def get_context(self, name: str) -> Any:
        """Raises ValueError if the context lacks it."""
        if name not in self._values:
            raise ValueError(f"context {name} is missing; cdk.json has its default")
        return self._values[name]


KEY_ARN = re.compile(r"arn:aws:kms:[a-z0-9\-]+:[0-9]{12}:key/[A-Za-z0-9\-]+")
SECRET_ARN = re.compile(r"arn:aws:secretsmanager:[a-z0-9\-]+:[0-9]{12}:secret:\S+")
SUBNET = re.compile(r"subnet-[0-9a-f]{8,}")
SECURITY_GROUP = re.compile(r"sg-[0-9a-f]{8,}")
TAG = re.compile(r"[^=\s]{1,128}=[^=\s]{0,256}")
LARGEST_VOLUME_GB = 16_384
# SageMaker takes 50; a job has four of the lab's own, an endpoint five.
MOST_TAGS = 45
# A function's variables have 4,096 bytes, of which the lab's others take 2,100 at most.
MOST_CHARACTERS = 1_900
# SageMaker calls these with a job's role in the VPC of the job.
NETWORK_ACTIONS = (
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)


def read_lab_jobs(node: CdkContext) -> LabJobs:
    subnets = _listed(node, "subnets", SUBNET, "subnet-0123456789abcdef0")
    groups = _listed(node, "security_groups", SECURITY_GROUP, "sg-0123456789abcdef0")
    if bool(subnets) != bool(groups):
        raise ValueError(
            f"context subnets={' '.join(subnets)!r}, security_groups={' '.join(groups)!r}: expected both or neither"
        )
    tags = _listed(node, "job_tags", TAG, "team=vision")
    if len(tags) > MOST_TAGS:
        raise ValueError(f"context job_tags: got {len(tags)} tags, expected at most {MOST_TAGS} beside the lab's own")
    jobs = LabJobs(
        subnet_ids=subnets,
        security_group_ids=groups,
        encrypts_traffic=read_switch(node, "encrypt_traffic"),
        isolates_network=read_switch(node, "isolate_network"),
        volume_key_arn=_key(node, "volume_key"),
        output_key_arn=_key(node, "output_key"),
        volume_size_gb=_volume_gb(node),
        tags=dict(tag.split("=", 1) for tag in tags),
        hub_token_secrets=_listed(node, "hub_token_secrets", SECRET_ARN, "arn:aws:secretsmanager:…:secret:…"),
    )
    size = len(write_lab_jobs(jobs))
    if size > MOST_CHARACTERS:
        raise ValueError(
            f"the settings of the lab's jobs have {size} characters, expected at most {MOST_CHARACTERS}, because all"
            " variables of a function have 4 KB: give fewer or shorter job_tags, hub_token_secrets, subnets"
        )
    return jobs


def data_keys(node: CdkContext) -> tuple[str, ...]:
    """The keys of the person's own buckets, if those are encrypted with KMS."""
    return _keys(node, "data_keys")


def read_switch(node: CdkContext, name: str, *, default: str = "off") -> bool:
    found = str(node.try_get_context(name) or default).lower()
    if found not in {"on", "true", "off", "false"}:
        raise ValueError(f"context {name}={found!r}: expected on or off")
    return found in {"on", "true"}


def lab_jobs_environment(jobs: LabJobs) -> dict[str, str]:
    """The variables of a function that plans or starts jobs; empty without settings."""
    return {} if jobs == LabJobs() else {LAB_JOBS_VARIABLE: write_lab_jobs(jobs)}


def training_grants(jobs: LabJobs, keys: tuple[str, ...]) -> Iterator[Grant]:
    """Permissions of the jobs' role besides data, source, results, logs and images. ``keys`` are of data buckets."""
    if jobs.subnet_ids:
        yield Grant(
            actions=NETWORK_ACTIONS,
            resources=["*"],
            wildcard_reason="SageMaker creates network interfaces in the job's subnets; most of these actions do not"
            " support resource-level permissions.",
        )
    if jobs.hub_token_secrets:
        yield Grant(actions=["secretsmanager:GetSecretValue"], resources=jobs.hub_token_secrets)
    if keys:
        yield Grant(actions=["kms:Decrypt"], resources=keys)
    if jobs.output_key_arn:
        yield Grant(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[jobs.output_key_arn])
    if jobs.volume_key_arn:
        yield Grant(actions=["kms:CreateGrant", "kms:DescribeKey"], resources=[jobs.volume_key_arn])


def _listed(node: CdkContext, name: str, pattern: re.Pattern[str], example: str) -> tuple[str, ...]:
    found = str(node.try_get_context(name) or "").split()
    wrong = [each for each in found if not pattern.fullmatch(each)]
    if wrong:
        raise ValueError(f"context {name}: got {wrong[0]!r}, expected entries such as {example}, separated by spaces")
    return tuple(found)


def _key(node: CdkContext, name: str) -> str | None:
    found = _keys(node, name)
    if len(found) > 1:
        raise ValueError(f"context {name}: got {len(found)} keys, expected one")
    return found[0] if found else None


def _keys(node: CdkContext, name: str) -> tuple[str, ...]:
    aliases = [each for each in str(node.try_get_context(name) or "").split() if "alias/" in each]
    if aliases:
        raise ValueError(
            f"context {name}={aliases[0]!r}: expected the key's ARN, since IAM permissions do not accept an alias; find"
            f" it with: aws kms describe-key --key-id {aliases[0]} --query KeyMetadata.Arn"
        )
    return _listed(node, name, KEY_ARN, "arn:aws:kms:<region>:<account>:key/<id>")


def _volume_gb(node: CdkContext) -> int:
    found = str(node.try_get_context("volume_gb") or LabJobs().volume_size_gb)
    if not found.isdecimal() or not 1 <= int(found) <= LARGEST_VOLUME_GB:
        raise ValueError(f"context volume_gb={found!r}: expected a whole number from 1 to {LARGEST_VOLUME_GB}")
    return int(found)
