"""The checks of `traindyno doctor --aws` on SageMaker's quotas that a first suite and a first deployment use."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from traindyno.aws.quotas import Quotas
from traindyno.cli.inputs.machine_checks import Check
from traindyno.core.planning.quotas import SERVICE_CODE, Quota, QuotaReading, account_quota, instance_quota
from traindyno.core.serving.deployment import SERVING_INSTANCE
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.preparation import REMOTE_INSTANCE

# The instance type of suites/smoke_aws.yaml, which README's AWS path runs first.
SMOKE_INSTANCE = "ml.m5.large"
REQUEST = f"aws service-quotas request-service-quota-increase --service-code {SERVICE_CODE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A quota, and what needs at least one instance of it."""

    quota: Quota
    needed_by: str


USES = (
    Use(quota=instance_quota(SMOKE_INSTANCE, Purchase.ON_DEMAND), needed_by="suites/smoke_aws.yaml"),
    Use(
        quota=instance_quota(REMOTE_INSTANCE, Purchase.ON_DEMAND),
        needed_by="the preparation of suites that set no other instance type for it",
    ),
    Use(quota=account_quota(Purchase.ON_DEMAND), needed_by="each training job"),
    Use(
        quota=Quota(name=f"{SERVING_INSTANCE} for endpoint usage", code=None, default=None),
        needed_by="traindyno deploy without --instance",
    ),
)


def check_quotas(connect: Callable[[str], Any]) -> list[Check]:
    """Reads limits only: the instances in use need rights that no deployment needs. ``connect`` makes a client."""
    quotas = Quotas(connect("service-quotas"), connect("cloudwatch"), connect("sagemaker"), sleep=time.sleep)
    limits = quotas.read_limits(use.quota for use in USES)
    return [_check(use, limits[use.quota.name]) for use in USES]


def _check(use: Use, reading: QuotaReading) -> Check:
    if reading.limit is None:
        return Check(subject=use.quota.name, found="unknown")
    advice = None
    if reading.limit < 1:
        code = reading.quota.code
        how = f"{REQUEST} --quota-code {code} --desired-value 1" if code else "in the Service Quotas console"
        advice = f"needed by {use.needed_by}; ask for it: {how}; AWS answers within hours or days"
    return Check(subject=use.quota.name, found=str(reading.limit), advice=advice)
