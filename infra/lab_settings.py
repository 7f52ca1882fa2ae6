"""What a person decides about a lab, read from the CDK context."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from constructs import Node

from infra.budget import BudgetScope
from infra.images import Image
from traindyno.core.lab_names import LAB_NAME


class Target(StrEnum):
    AWS = "aws"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedConcurrency:
    """Numbers that replace what a plan says: lanes at once, and runs at once in each lane."""

    lanes: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSettings:
    """``concurrency`` of None leaves it to each suite's plan, as it should be wherever that is possible.

    ``budget_usd`` is monthly; None: no budget. ``data_buckets`` are the person's own buckets that training jobs may
    read, beside the lab's. ``images`` are built at deployment. ``checks_rules``: synthesis fails on any finding of the
    security rules; `make check` asks for it. ``reserves_sweep``: one of the account's concurrent Lambda executions is
    reserved for ReconcileRuns, so that no two sweeps overlap.
    """

    lab: str
    target: Target
    concurrency: FixedConcurrency | None
    notify_email: str | None
    data_buckets: tuple[str, ...]
    images: tuple[Image, ...]
    checks_rules: bool
    reserves_sweep: bool
    budget_usd: Decimal | None
    budget_scope: BudgetScope


def read_lab_settings(node: Node) -> LabSettings:
    lab = str(node.get_context("lab"))
    if not LAB_NAME.fullmatch(lab):
        raise ValueError(
            f"context lab={lab!r}: a lab's name is 1 to 18 lower-case letters, digits and single hyphens,"
            " beginning with a letter"
        )
    target = _target(str(node.get_context("target")))
    return LabSettings(
        lab=lab,
        target=target,
        concurrency=_concurrency(node, target),
        notify_email=node.try_get_context("notify_email"),
        images=(Image.EFA, Image.NEURON) if _switch(node, "neuron") else (Image.EFA,),
        checks_rules=_switch(node, "rules"),
        reserves_sweep=_switch(node, "reserve_sweep", default="on"),
        budget_usd=_budget_usd(node, target),
        budget_scope=_budget_scope(node),
        data_buckets=tuple(str(node.try_get_context("data_buckets") or "").split()),
    )


def _target(found: str) -> Target:
    try:
        return Target(found)
    except ValueError as error:
        raise ValueError(f"context target={found!r}: expected one of {', '.join(Target)}") from error


def _budget_usd(node: Node, target: Target) -> Decimal | None:
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


def _budget_scope(node: Node) -> BudgetScope:
    found = str(node.try_get_context("budget_scope") or BudgetScope.SAGEMAKER)
    try:
        return BudgetScope(found)
    except ValueError as error:
        raise ValueError(f"context budget_scope={found!r}: expected one of {', '.join(BudgetScope)}") from error


def _concurrency(node: Node, target: Target) -> FixedConcurrency | None:
    lanes, runs = _count(node, "lanes_at_once"), _count(node, "lane_concurrency")
    # The local cloud's Step Functions doesn't read a Map's concurrency from its input.
    if lanes is None and runs is None and target is Target.AWS:
        return None
    return FixedConcurrency(lanes=lanes or 1, runs=runs or 1)


def _count(node: Node, name: str) -> int | None:
    found = node.try_get_context(name)
    if found is None:
        return None
    if not str(found).isdecimal() or int(str(found)) < 1:
        raise ValueError(f"context {name}={found!r}: expected a whole number of at least 1")
    return int(str(found))


def _switch(node: Node, name: str, *, default: str = "off") -> bool:
    found = str(node.try_get_context(name) or default).lower()
    if found not in {"on", "true", "off", "false"}:
        raise ValueError(f"context {name}={found!r}: expected on or off")
    return found in {"on", "true"}
