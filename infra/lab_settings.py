"""A lab's settings, read from the CDK context."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from constructs import Node

from infra.budget import BudgetScope
from infra.images import Image
from infra.lab_jobs import CdkContext, data_keys, read_lab_jobs, read_switch
from traindyno.core.lab_names import LAB_NAME, LAB_NAME_RULE
from traindyno.sagemaker.job_settings import LabJobs

BOUNDARY_ARN = re.compile(r"arn:aws:iam::([0-9]{12}|aws):policy/\S+")
OTHER_PARTITIONS = ("cn-", "us-gov-", "us-iso", "eu-isoe-")


class Target(StrEnum):
    AWS = "aws"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedConcurrency:
    """Numbers that replace those of a plan: parallel lanes, and parallel runs in each lane."""

    lanes: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSettings:
    """``concurrency``: None (default) lets each suite's plan decide.

    ``budget_usd`` is monthly; None: no budget. ``data_buckets`` are the person's own buckets that training jobs may
    read, beside the lab's. ``images`` are built at deployment. ``checks_rules``: synthesis fails on any finding of the
    security rules; `make check` asks for it. ``data_keys`` are the KMS keys of the data buckets.
    ``permissions_boundary``: the ARN of the policy that bounds every role of the lab. ``keeps_results``: the results
    bucket and the table outlive the lab.
    """

    lab: str
    target: Target
    concurrency: FixedConcurrency | None
    notify_email: str | None
    data_buckets: tuple[str, ...]
    images: tuple[Image, ...]
    checks_rules: bool
    jobs: LabJobs
    data_keys: tuple[str, ...]
    permissions_boundary: str | None
    budget_usd: Decimal | None
    budget_scope: BudgetScope
    keeps_results: bool


def read_lab_settings(app: Node, *, region: str | None = None) -> LabSettings:
    """``region``: where the lab is about to be deployed, if that is known; raises ValueError."""
    _refuse_other_partitions(region)
    node = CdkContext(app)
    lab = str(node.get_context("lab"))
    if not LAB_NAME.fullmatch(lab):
        raise ValueError(f"context lab={lab!r}: a lab's name is {LAB_NAME_RULE}")
    target = _target(str(node.get_context("target")))
    return LabSettings(
        lab=lab,
        target=target,
        concurrency=_concurrency(node, target),
        notify_email=node.try_get_context("notify_email"),
        images=tuple(Image) if read_switch(node, "neuron") else (Image.CPU, Image.EFA),
        checks_rules=read_switch(node, "rules"),
        budget_usd=_budget_usd(node, target),
        budget_scope=_budget_scope(node),
        keeps_results=read_switch(node, "keep_results"),
        jobs=read_lab_jobs(node),
        data_keys=data_keys(node),
        permissions_boundary=_boundary(node),
        data_buckets=tuple(str(node.try_get_context("data_buckets") or "").split()),
    )


def _boundary(node: CdkContext) -> str | None:
    found: str | None = node.try_get_context("permissions_boundary")
    if found is not None and not BOUNDARY_ARN.fullmatch(found):
        expected = "arn:aws:iam::<account>:policy/<name>"
        raise ValueError(f"context permissions_boundary={found!r}: expected {expected}")
    return found


def _refuse_other_partitions(region: str | None) -> None:
    """Prices, quotas and public images come from the standard partition's services."""
    if region is not None and region.startswith(OTHER_PARTITIONS):
        raise ValueError(
            f"region {region}: expected a region of AWS's standard partition, such as us-east-1 or eu-central-1;"
            " in China and GovCloud the Price List and the public images that the lab uses are missing"
        )


def _target(found: str) -> Target:
    try:
        return Target(found)
    except ValueError as error:
        raise ValueError(f"context target={found!r}: expected one of {', '.join(Target)}") from error


def _budget_usd(node: CdkContext, target: Target) -> Decimal | None:
    found = node.try_get_context("budget_usd")
    if found is None:
        return None
    if target is Target.LOCAL:
        raise ValueError(f"context budget_usd={found!r}: the local cloud bills nothing; leave it out with target=local")
    try:
        amount = Decimal(str(found))
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or amount <= 0:
        raise ValueError(f"context budget_usd={found!r}: expected USD a month, above 0, such as 500")
    return amount


def _budget_scope(node: CdkContext) -> BudgetScope:
    found = str(node.try_get_context("budget_scope") or BudgetScope.SAGEMAKER)
    try:
        return BudgetScope(found)
    except ValueError as error:
        raise ValueError(f"context budget_scope={found!r}: expected one of {', '.join(BudgetScope)}") from error


def _concurrency(node: CdkContext, target: Target) -> FixedConcurrency | None:
    lanes, runs = _count(node, "lanes_at_once"), _count(node, "lane_concurrency")
    # The local cloud's Step Functions doesn't read a Map's concurrency from its input.
    if lanes is None and runs is None and target is Target.AWS:
        return None
    return FixedConcurrency(lanes=lanes or 1, runs=runs or 1)


def _count(node: CdkContext, name: str) -> int | None:
    found = node.try_get_context(name)
    if found is None:
        return None
    if not str(found).isdecimal() or int(str(found)) < 1:
        raise ValueError(f"context {name}={found!r}: expected a whole number of at least 1")
    return int(str(found))
