"""The checks of `traindyno doctor` on this machine and, with --aws, in an account, each with
advice.
"""

import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from traindyno.aws.account import bootstrap_version, pull_problem, settings_problem
from traindyno.aws.deployment import LabNotDeployed, find_deployment
from traindyno.aws.prices import PriceSource
from traindyno.aws.quotas import Quotas
from traindyno.core.lab_names import NO_OTHER_PARTITION, OTHER_PARTITIONS
from traindyno.core.planning.quotas import Quota, QuotaReading, account_quota, instance_quota
from traindyno.core.serving.deployment import SERVING_INSTANCE
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.preparation import REMOTE_INSTANCE
from traindyno.sagemaker.images import ImageUnavailable, default_image, stock_image_uri
from traindyno.sagemaker.serving import IMAGES

NEEDED_DISK_GB = 10
COMPILERS = ("g++", "c++", "clang++")
PACKAGES = ("traindyno", "boto3", "torch", "aws-cdk-lib")
# The instance type of suites/smoke_aws.yaml, which README's AWS path runs first.
SMOKE_INSTANCE = "ml.m5.large"
ENDPOINT_QUOTA = Quota(name=f"{SERVING_INSTANCE} for endpoint usage", code=None, default=None)
# Quota → what needs at least one instance of it.
USES = {
    instance_quota(SMOKE_INSTANCE, Purchase.ON_DEMAND): "suites/smoke_aws.yaml",
    instance_quota(
        REMOTE_INSTANCE, Purchase.ON_DEMAND
    ): "the preparation of suites that set no other type for it",
    account_quota(Purchase.ON_DEMAND): "each training job",
    ENDPOINT_QUOTA: "traindyno deploy without --instance",
}
NEEDED_BOOTSTRAP = 6
# Image of AWS's private registries, which SageMaker pulls for the account → what needs it.
PULLED_IMAGES = {
    default_image("none"): "scripts on CPUs",
    **{image: f"traindyno deploy to a {kind.upper()}" for kind, image in IMAGES.items()},
}
# The CDK's own qualifier of its bootstrap
DEFAULT_QUALIFIER = "hnb659fds"
Connect = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a check of ``doctor`` found; ``advice`` says what to do, and is None if nothing is
    wrong.
    """

    subject: str
    found: str
    advice: str | None = None


def check_machine(folder: Path) -> Iterator[Check]:
    """Checks of this machine.

    ``folder`` holds the state of the local cloud.
    """
    yield Check(subject="Python", found=".".join(map(str, sys.version_info[:3])))
    yield _compiler(next((path for name in COMPILERS if (path := shutil.which(name))), None))
    yield _disk(shutil.disk_usage(folder).free / 1e9)
    yield _loopback()
    yield from map(_package, PACKAGES)


def _compiler(path: str | None) -> Check:
    advice = None if path else "install g++: cells with compiler inductor need a C++ compiler"
    return Check(subject="C++ compiler", found=path or "none", advice=advice)


def _disk(free_gb: float) -> Check:
    advice = (
        None
        if free_gb >= NEEDED_DISK_GB
        else f"free {NEEDED_DISK_GB} GB: environments and jobs' folders need it"
    )
    return Check(subject="free disk space", found=f"{free_gb:.0f} GB", advice=advice)


def _loopback() -> Check:
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
    except OSError as error:
        return Check(subject="ports", found=str(error), advice="allow listening on 127.0.0.1")
    return Check(subject="ports", found="127.0.0.1 can be listened on")


def _package(name: str) -> Check:
    try:
        return Check(subject=name, found=metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(
            subject=name, found="not installed", advice="run `make install` in the checkout"
        )


def check_quotas(connect: Callable[[str], Any]) -> list[Check]:
    """Reads limits only: the instances in use need rights that no deployment needs.

    ``connect`` makes a client.
    """
    quotas = Quotas(connect("service-quotas"), connect("sagemaker"), sleep=time.sleep)
    limits = quotas.read_limits(USES)
    return [_check_quota(limits[quota.name], needed_by) for quota, needed_by in USES.items()]


def _check_quota(reading: QuotaReading, needed_by: str) -> Check:
    if reading.limit is None:
        return Check(subject=reading.quota.name, found="unknown")
    advice = None
    if reading.limit < 1:
        advice = (
            f"needed by {needed_by}; ask for it: {reading.how_to_ask(1)}; AWS answers within "
            "hours or days"
        )
    return Check(subject=reading.quota.name, found=str(reading.limit), advice=advice)


def check_account(
    connect: Connect,
    *,
    region: str | None,
    lab: str,
    qualifier: str = DEFAULT_QUALIFIER,
) -> Iterator[Check]:
    """Checks of an AWS account.

    If a check can't run, its answer says why, and the other checks continue.

    Args:
        connect: Function that makes a client of a service.
        region: Region to check; None where the settings name none.
        lab: Name of the lab.
        qualifier: Qualifier of the CDK bootstrap.
    """
    identity = _guarded("identity", lambda: connect("sts").get_caller_identity()["Arn"])
    if isinstance(identity, Check):
        yield identity
        return
    yield Check(subject="identity", found=identity)
    yield _region(region)
    checks: tuple[tuple[str, Callable[[], Check | list[Check]]], ...] = (
        ("CDK bootstrap", lambda: _bootstrap(connect("ssm"), region, qualifier)),
        ("quotas", lambda: check_quotas(connect)),
        ("prices", lambda: _price(connect("pricing"), region)),
        *((f"image {name}", partial(_pull, connect, name, region or "")) for name in PULLED_IMAGES),
        ("lab", lambda: _lab(connect, lab)),
    )
    for subject, check in checks:
        outcome = _guarded(subject, check)
        yield from [outcome] if isinstance(outcome, Check) else outcome


def _guarded(subject: str, check: Callable[[], Any]) -> Any:
    try:
        return check()
    except (ClientError, BotoCoreError) as error:
        problem = settings_problem(error)
        advice = (
            "name an account with --region and --profile, or set one up with `aws configure`"
            if problem
            else "allow this call, or check your AWS settings"
        )
        advice = f"{advice}: `aws sts get-caller-identity` must succeed"
        return Check(subject=subject, found=f"not known: {problem or error}", advice=advice)


def _region(region: str | None) -> Check:
    advice = None
    if region is None:
        advice = "set AWS_DEFAULT_REGION, or give --region"
    elif region.startswith(OTHER_PARTITIONS):
        advice = f"choose {NO_OTHER_PARTITION}"
    return Check(subject="region", found=region or "none", advice=advice)


def _bootstrap(ssm: Any, region: str | None, qualifier: str) -> Check:
    version = bootstrap_version(ssm, qualifier)
    is_enough = version is not None and version >= NEEDED_BOOTSTRAP
    advice = (
        None
        if is_enough
        else f"run `cdk bootstrap` in {region}: version {NEEDED_BOOTSTRAP} or newer is needed"
    )
    return Check(
        subject="CDK bootstrap", found=f"version {version}" if version else "none", advice=advice
    )


def _price(pricing: Any, region: str | None) -> Check:
    price = (
        PriceSource(region=region or "", pricing=pricing).read([SMOKE_INSTANCE]).get(SMOKE_INSTANCE)
    )
    price_text = (
        f"{SMOKE_INSTANCE} ${price.usd_per_hour}/h" if price else f"none for {SMOKE_INSTANCE}"
    )
    advice = None if price else "choose a region where SageMaker trains on this type"
    return Check(subject="prices", found=price_text, advice=advice)


def _pull(connect: Connect, name: str, region: str) -> Check:
    subject = f"image {name}"
    needed = f"needed by {PULLED_IMAGES[name]}"
    try:
        uri = stock_image_uri(name, region)
    except ImageUnavailable as error:
        return Check(subject=subject, found=str(error), advice=f"{needed}: choose another region")
    problem = pull_problem(connect("ecr"), uri)
    how = (
        f"{needed}: allow ecr:BatchGetImage on {uri} to yourself and to the lab's roles; the tag "
        "must exist"
    )
    return Check(subject=subject, found=problem or "can be pulled", advice=how if problem else None)


def _lab(connect: Connect, lab: str) -> Check:
    try:
        deployment = find_deployment(connect("cloudformation"), lab)
    except LabNotDeployed as error:
        return Check(subject="lab", found="not deployed", advice=str(error))
    return Check(subject="lab", found=deployment.state_machine_arn)
