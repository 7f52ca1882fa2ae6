"""The quotas that a plan needs, their values from the account or a file, and how much of them is in
use.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from traindyno.core.documents.converter import read_checked
from traindyno.core.documents.problems import refusal, shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import LOCAL_PREFIX, find_instance_type, instance_types
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.preparation import needed_tokens, preparation_instance
from traindyno.core.suite.suite import Suite

SERVICE_CODE = "sagemaker"
SHAPE = "region and quotas"
QuotaReadings = Mapping[str, "QuotaReading"]


class Counted(StrEnum):
    """Which instances a quota counts."""

    TRAINING = "training"
    SPOT = "spot"


class UsageSource(StrEnum):
    """Where the number of instances in use comes from."""

    JOBS = "training_jobs"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit with its name in Service Quotas.

    ``code`` and ``default`` are None if AWS's published table has none. ``counts`` is None if the
    quota does not limit instances in use. ``instance_type`` is None if it applies to all types
    together.
    """

    name: str
    code: str | None
    default: int | None
    counts: Counted | None = None
    instance_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReading:
    """AWS's answer for this account; None is unknown.

    ``is_not_listed`` says that Service Quotas was searched, and lists no quota of this name.
    ``unknown_because`` says why it answers without the value. ``in_use_as_of`` is in epoch seconds.
    ``region`` is None where nothing says which one it is.
    """

    quota: Quota
    applied: int | None
    default: int | None
    in_use: int | None
    in_use_source: UsageSource | None = None
    in_use_as_of: float | None = None
    is_not_listed: bool = False
    unknown_because: str | None = None
    region: str | None = None

    def how_to_ask(self, value: int) -> str:
        """How to request this value. A quota without a known code is requested in the console."""
        quota = self.quota
        if quota.code is None:
            return f'"{quota.name}" in the Service Quotas console, {value}'
        command = f"aws service-quotas request-service-quota-increase --service-code {SERVICE_CODE}"
        where = f" --region {self.region}" if self.region else ""
        return f"{command} --quota-code {quota.code} --desired-value {value}{where}"

    @property
    def limit(self) -> int | None:
        return self.default if self.applied is None else self.applied

    @property
    def available(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - (self.in_use or 0))


def instance_quota(instance_type: str, purchase: Purchase) -> Quota:
    return _instance_quota(
        instance_type, Counted.SPOT if purchase is Purchase.SPOT else Counted.TRAINING
    )


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


def needed_quotas(suite: Suite) -> tuple[Quota, ...]:
    """The quotas to read before the suite can be planned; none for this machine's own types."""
    types = dict.fromkeys(cell.settings.instance for cell in suite.cells)
    remote = [name for name in types if not is_host_shared(name)]
    quotas = [instance_quota(name, suite.purchase) for name in remote]
    if remote:
        quotas += [job_size_quota(suite.purchase), account_quota(suite.purchase), run_time_quota()]
    preparing = preparation_instance(suite)
    if needed_tokens(suite) and not is_host_shared(preparing):
        quotas += [instance_quota(preparing, Purchase.ON_DEMAND), account_quota(Purchase.ON_DEMAND)]
    return tuple(dict.fromkeys(quotas))


@cache
def known_quotas() -> Mapping[str, Quota]:
    """Quotas by name: all quotas of training instances in AWS's table, and all that an instance
    type may have.
    """
    types = [name for name, known_type in instance_types().items() if not known_type.is_local]
    per_type = [_instance_quota(name, usage) for name in types for usage in Counted]
    return {
        quota.name: quota for quota in (*map(_account_quota, _table()["account_level"]), *per_type)
    }


def is_host_shared(instance_type: str) -> bool:
    known_type = find_instance_type(instance_type)
    return known_type is not None and known_type.shares_host


def _instance_quota(instance_type: str, counted: Counted) -> Quota:
    table = _table()
    row = table["per_instance"].get(instance_type, {}).get(counted.value, {})
    name = table["name_patterns"][counted.value].format(instance_type=instance_type)
    return Quota(
        name=name,
        code=row.get("code"),
        default=row.get("default"),
        counts=counted,
        instance_type=instance_type,
    )


def _account_quota(name: str) -> Quota:
    row = _table()["account_level"][name]
    return Quota(name=name, code=row["code"], default=row["default"])


@cache
def _table() -> Any:
    return json.loads(
        files("traindyno.core.planning.data").joinpath("quotas.json").read_text(encoding="utf-8")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenQuota:
    """A quota that a user gives. If ``applied`` is None, AWS's default applies."""

    applied: int | None = None
    in_use: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenQuotas:
    """Quotas that a user gives.

    ``quotas`` has for each name in Service Quotas the value, or a mapping with ``applied`` and
    ``in_use``.
    """

    region: str
    quotas: Mapping[str, GivenQuota]

    def needed(self, quotas: Iterable[Quota]) -> dict[str, QuotaReading]:
        """Readings of these quotas only; one that the file does not name is unknown, AWS's default
        included.
        """
        return {quota.name: replace(self._read(quota), region=self.region) for quota in quotas}

    def _read(self, quota: Quota) -> QuotaReading:
        given = self.quotas.get(quota.name)
        if given is None:
            return QuotaReading(quota=quota, applied=None, default=None, in_use=None)
        source = None if given.in_use is None else UsageSource.FILE
        return QuotaReading(
            quota=quota,
            applied=given.applied,
            default=quota.default,
            in_use=given.in_use,
            in_use_source=source,
        )


def parse_quotas(document: Mapping[str, Any]) -> GivenQuotas:
    spelt = _spelt_out(document)
    return read_checked(spelt, GivenQuotas, list(_problems(spelt)))


def _spelt_out(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plain number is the applied value."""
    quotas = document.get("quotas")
    if not isinstance(quotas, Mapping):
        return document
    spelt = {
        name: value if isinstance(value, Mapping) else {"applied": value}
        for name, value in quotas.items()
    }
    return {**document, "quotas": spelt}


def _problems(spelt: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of content; the converter reports problems of form."""
    quotas = spelt.get("quotas")
    for name, given in quotas.items() if isinstance(quotas, Mapping) else ():
        path = f"quotas.{name}"
        if name not in known_quotas():
            expected = 'a name of Service Quotas, such as "ml.p4d.24xlarge for training job usage"'
            meant = get_close_matches(str(name), known_quotas(), n=1)
            yield Problem(path=path, message=refusal(f"got {shown(name)}", expected, meant))
        for part, value in given.items():
            if isinstance(value, int) and value < 0:
                yield Problem(path=f"{path}.{part}", message=f"got {value}, expected 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInstances:
    """Instances of one job, or of one of its instance groups, also those that are kept warm after
    the job's end.
    """

    instance_type: str
    instance_count: int
    is_spot: bool


def count_in_use(quota: Quota, held: Iterable[HeldInstances]) -> int | None:
    """Instances in use; None for a quota that does not limit them."""
    if quota.counts is None:
        return None
    counted = [job for job in held if job.is_spot is (quota.counts is Counted.SPOT)]
    if quota.instance_type is None:
        counted = [job for job in counted if not job.instance_type.startswith(LOCAL_PREFIX)]
    else:
        counted = [job for job in counted if job.instance_type == quota.instance_type]
    return sum(job.instance_count for job in counted)
