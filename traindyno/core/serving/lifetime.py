"""How long a deployment may exist and what it may cost at most; the scheduled sweep of the lab ends it."""

from collections.abc import Iterator
from decimal import Decimal
from math import floor

from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.prices import SECONDS_PER_HOUR, cost_usd
from traindyno.core.errors import Problem
from traindyno.core.serving.deployment import Hosting, ModelDeployment

# SageMaker's own limit on the instances of a transform job. Its API has none for an endpoint.
MOST_INSTANCES = 100
# CreateTransformJob has no time limit, so the lab has one.
LONGEST_TRANSFORM_HOURS = 120
# The next sweep comes within 5 minutes. 5 more are reserved until SageMaker has deleted or stopped what the sweep ends.
SWEEP_SECONDS, END_SECONDS = 300, 300
NOTICE_SECONDS = SWEEP_SECONDS + END_SECONDS
START_SECONDS = 600
LEAST_PAID_SECONDS = START_SECONDS + NOTICE_SECONDS


def life_seconds(deployment: ModelDeployment, created_at: float) -> Decimal | None:
    """From this age on, a sweep ends the deployment; None: it is kept. Times are epoch seconds."""
    limits = list(_limits(deployment, Decimal(str(created_at))))
    return min(limits) if limits else None


def ends_at(deployment: ModelDeployment, created_at: float) -> float | None:
    seconds = life_seconds(deployment, created_at)
    return None if seconds is None else created_at + float(seconds)


def most_usd(deployment: ModelDeployment, created_at: float) -> Decimal | None:
    """The cost of the longest life; None if it has no end, or if the price is unknown."""
    seconds = life_seconds(deployment, created_at)
    if seconds is None or deployment.usd_per_hour is None:
        return None
    return cost_usd(max(seconds, Decimal(0)) + NOTICE_SECONDS, deployment.instance_count, deployment.usd_per_hour)


def end_reason(deployment: ModelDeployment, created_at: float) -> str:
    """Why a sweep ends the deployment."""
    paid = _paid_life_seconds(deployment)
    if deployment.max_usd is not None and paid is not None and paid == life_seconds(deployment, created_at):
        return f"the lab ended it before it could cost more than its max_usd of {exact_usd_text(deployment.max_usd)}"
    if deployment.is_endpoint:
        return "expired"
    return "the lab stopped it, because it had not ended within its time limit"


def paid_seconds(deployment: ModelDeployment) -> int | None:
    """The whole seconds of all instances that ``max_usd`` pays for; None without it, or if the price is unknown."""
    usd_per_hour = deployment.all_instances_usd_per_hour
    if deployment.max_usd is None or not usd_per_hour:
        return None
    return floor(deployment.max_usd * SECONDS_PER_HOUR / usd_per_hour)


def limit_problems(deployment: ModelDeployment) -> Iterator[Problem]:
    if deployment.instance_count > MOST_INSTANCES:
        yield Problem(
            path="instance_count",
            message=f"got {deployment.instance_count}, expected at most {MOST_INSTANCES}, SageMaker's limit",
        )
    if deployment.max_usd is None:
        return
    paid = paid_seconds(deployment)
    if deployment.max_usd <= 0:
        yield Problem(path="max_usd", message=f"got {deployment.max_usd}, expected an amount above 0")
    elif paid is None:
        place = "a serverless endpoint" if deployment.hosting is Hosting.SERVERLESS else deployment.instance_type
        yield Problem(
            path="max_usd",
            message=f"got {deployment.max_usd}, but the price of {place} is unknown, so no amount can be kept:"
            " leave it out; an expiry bounds the time",
        )
    elif paid < LEAST_PAID_SECONDS:
        least = cost_usd(LEAST_PAID_SECONDS, deployment.instance_count, Decimal(str(deployment.usd_per_hour)))
        yield Problem(
            path="max_usd",
            message=f"got {deployment.max_usd}, which pays for {paid} s of {deployment.instance_count} ×"
            f" {deployment.instance_type}; expected at least {exact_usd_text(least)}, which pays for"
            f" {LEAST_PAID_SECONDS} s: up to {START_SECONDS} s until it starts, {NOTICE_SECONDS} s until it has ended",
        )


def _limits(deployment: ModelDeployment, created_at: Decimal) -> Iterator[Decimal]:
    if deployment.expires_at is not None:
        yield Decimal(str(deployment.expires_at)) - created_at
    if not deployment.is_endpoint:
        yield Decimal(LONGEST_TRANSFORM_HOURS * SECONDS_PER_HOUR)
    paid = _paid_life_seconds(deployment)
    if paid is not None:
        yield paid


def _paid_life_seconds(deployment: ModelDeployment) -> Decimal | None:
    """``max_usd`` also pays for the time until the end is noticed and has come."""
    paid = paid_seconds(deployment)
    return None if paid is None else Decimal(max(0, paid - NOTICE_SECONDS))
