"""SageMaker's quotas on training instances: which apply to a suite, and the request that raises one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from traindyno.core.instances.instance_types import find_instance_type, instance_types
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.fallback_cells import needed_types
from traindyno.core.suite.preparation import needed_tokens, preparation_instance
from traindyno.core.suite.suite import Cell, Suite

SERVICE_CODE = "sagemaker"


class Counted(StrEnum):
    """Which instances a quota counts."""

    TRAINING = "training"
    SPOT = "spot"
    WARM_POOL = "warm_pool"


class UsageSource(StrEnum):
    """Where the number of instances in use comes from."""

    METRIC = "usage_metric"
    JOBS = "training_jobs"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit with its name in Service Quotas. ``code`` and ``default`` are None if AWS's published table has none.
    ``counts`` is None if the quota does not limit instances in use. ``instance_type`` is None if it applies to all
    types together.
    """

    name: str
    code: str | None
    default: int | None
    counts: Counted | None = None
    instance_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReading:
    """AWS's answer for this account; None is unknown. ``is_not_listed``: Service Quotas was searched, and lists no
    quota of this name. ``unknown_because``: it answers without the value. ``in_use_as_of``: epoch seconds.
    """

    quota: Quota
    applied: int | None
    default: int | None
    in_use: int | None
    in_use_source: UsageSource | None = None
    in_use_as_of: float | None = None
    is_not_listed: bool = False
    unknown_because: str | None = None

    @property
    def limit(self) -> int | None:
        return self.default if self.applied is None else self.applied

    @property
    def available(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - (self.in_use or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaIncrease:
    """The increase that a suite needs. A quota without a known code is requested in the console."""

    name: str
    code: str | None
    current_value: int
    desired_value: int


QuotaReadings = Mapping[str, QuotaReading]


def instance_quota(instance_type: str, purchase: Purchase) -> Quota:
    return _instance_quota(instance_type, Counted.SPOT if purchase is Purchase.SPOT else Counted.TRAINING)


def warm_pool_quota(instance_type: str) -> Quota:
    return _instance_quota(instance_type, Counted.WARM_POOL)


def job_size_quota(purchase: Purchase) -> Quota:
    spot = purchase is Purchase.SPOT
    return _account_quota(f"Maximum number of instances per {'spot ' if spot else ''}training job")


def account_quota(purchase: Purchase) -> Quota:
    spot = purchase is Purchase.SPOT
    quota = _account_quota(f"Number of instances across all {'spot ' if spot else ''}training jobs")
    return replace(quota, counts=Counted.SPOT if spot else Counted.TRAINING)


def run_time_quota() -> Quota:
    """The quota on the longest run time, in seconds."""
    return _account_quota("Longest run time for a training job")


def needed_quotas(suite: Suite, cells: Iterable[Cell]) -> tuple[Quota, ...]:
    """The quotas to read before the suite can be planned; none for this machine's own types."""
    listed = tuple(cells)
    remote = [name for name in needed_types(suite, listed) if not is_host_shared(name)]
    quotas = [instance_quota(name, suite.purchase) for name in remote]
    if suite.warm_pool_seconds:
        quotas += [warm_pool_quota(name) for name in remote]
    if remote:
        quotas += [job_size_quota(suite.purchase), account_quota(suite.purchase), run_time_quota()]
    return tuple(dict.fromkeys([*quotas, *_preparation_quotas(suite, listed)]))


def _preparation_quotas(suite: Suite, cells: Sequence[Cell]) -> tuple[Quota, ...]:
    name = preparation_instance(suite, cells)
    if not needed_tokens(suite, cells) or is_host_shared(name):
        return ()
    return instance_quota(name, Purchase.ON_DEMAND), account_quota(Purchase.ON_DEMAND)


@cache
def known_quotas() -> Mapping[str, Quota]:
    """Name → quota: all on training instances in AWS's table, and all that an instance type may have."""
    types = [name for name, found in instance_types().items() if not found.is_local]
    per_type = [_instance_quota(name, usage) for name in types for usage in Counted]
    return {quota.name: quota for quota in (*map(_account_quota, _table()["account_level"]), *per_type)}


def is_host_shared(instance_type: str) -> bool:
    found = find_instance_type(instance_type)
    return found is not None and found.shares_host


def _instance_quota(instance_type: str, counted: Counted) -> Quota:
    table = _table()
    row = table["per_instance"].get(instance_type, {}).get(counted.value, {})
    name = table["name_patterns"][counted.value].format(instance_type=instance_type)
    return Quota(
        name=name, code=row.get("code"), default=row.get("default"), counts=counted, instance_type=instance_type
    )


def _account_quota(name: str) -> Quota:
    row = _table()["account_level"][name]
    return Quota(name=name, code=row["code"], default=row["default"])


@cache
def _table() -> Any:
    return json.loads(files("traindyno.core.planning.data").joinpath("quotas.json").read_text(encoding="utf-8"))
