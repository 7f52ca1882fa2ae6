"""Limits of the account from Service Quotas, and the instances in use by its training jobs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.planning.quotas import (
    SERVICE_CODE,
    HeldInstances,
    Quota,
    QuotaReading,
    UsageSource,
    count_in_use,
)
from traindyno.sagemaker.job_description import read_held_instances, read_job_names

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_service_quotas import ServiceQuotasClient

PAGE_SIZE = 100  # the largest page that AWS returns, of more than 1,500 quotas
# SageMaker allows two listings and five descriptions a second; the lab's other functions need some
# of them.
BETWEEN_LISTINGS_SECONDS = 0.7
BETWEEN_DESCRIPTIONS_SECONDS = 0.3
MOST_DESCRIPTIONS = 300
HOLDING: tuple[Mapping[str, str], ...] = (
    {"StatusEquals": "InProgress"},
    {"StatusEquals": "Stopping"},
    {"WarmPoolStatusEquals": "Available"},
)


def find_by_name(
    service_quotas: "ServiceQuotasClient", names: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    """Quotas by name.

    Reads AWS's defaults first, which lack only the quotas that this account alone has, and stops
    when all names are found. A name that is in neither list is left out.
    """
    wanted = set(names)
    rows_by_name: dict[str, Mapping[str, Any]] = {}
    for row in _rows(service_quotas):
        if row["QuotaName"] in wanted:
            rows_by_name.setdefault(row["QuotaName"], row)
        if len(rows_by_name) == len(wanted):
            break
    return rows_by_name


def _rows(service_quotas: "ServiceQuotasClient") -> Iterator[Mapping[str, Any]]:
    asked: dict[str, Any] = {
        "ServiceCode": SERVICE_CODE,
        "PaginationConfig": {"PageSize": PAGE_SIZE},
    }
    defaults = service_quotas.get_paginator("list_aws_default_service_quotas").paginate(**asked)
    applied = service_quotas.get_paginator("list_service_quotas").paginate(**asked)
    for page in chain(defaults, applied):
        yield from (
            row for row in page.get("Quotas", []) if "QuotaName" in row and "QuotaCode" in row
        )


def quota_value(row: Mapping[str, Any] | None) -> int | None:
    """None without a row, and for a row whose value AWS leaves out."""
    return int(row["Value"]) if row and "Value" in row else None


def why_no_value(row: Mapping[str, Any]) -> str | None:
    if "Value" in row:
        return None
    reason = row.get("ErrorReason", {})
    said = ": ".join(reason[part] for part in ("ErrorCode", "ErrorMessage") if part in reason)
    return f"Service Quotas answers without its value ({said or 'and gives no reason'})"


class Quotas:
    def __init__(
        self,
        service_quotas: "ServiceQuotasClient",
        sagemaker: "SageMakerClient",
        *,
        sleep: Callable[[float], None],
    ) -> None:
        self._service_quotas = service_quotas
        self._sagemaker = sagemaker
        self._sleep = sleep

    def read(self, quotas: Iterable[Quota], *, now: float) -> dict[str, QuotaReading]:
        """Readings by name."""
        return {
            name: self._with_usage(reading, now)
            for name, reading in self.read_limits(quotas).items()
        }

    def read_limits(self, quotas: Iterable[Quota]) -> dict[str, QuotaReading]:
        """Readings by name without the instances in use, whose reading needs a listing of jobs.

        Quotas whose code is unknown, or not valid in this region, are searched by name, all in one
        listing.
        """
        readings = {quota: self._limit(quota) for quota in quotas}
        unread = [quota.name for quota, reading in readings.items() if reading is None]
        named = find_by_name(self._service_quotas, unread) if unread else {}
        return {
            quota.name: replace(
                reading or self._limit_by_name(quota, named.get(quota.name)),
                region=self._service_quotas.meta.region_name,
            )
            for quota, reading in readings.items()
        }

    @cached_property
    def _held(self) -> tuple[HeldInstances, ...] | None:
        return list_held_instances(self._sagemaker, sleep=self._sleep)

    def _limit_by_name(self, quota: Quota, row: Mapping[str, Any] | None) -> QuotaReading:
        unread = QuotaReading(
            quota=quota, applied=None, default=quota.default, in_use=None, is_not_listed=row is None
        )
        if row is None:
            return unread
        quota = replace(quota, code=row["QuotaCode"])
        return self._limit(quota) or replace(unread, quota=quota)

    def _limit(self, quota: Quota) -> QuotaReading | None:
        """None if AWS has neither an applied value nor a default for the quota's code.

        It answers 200 with an ErrorReason where it can't tell the value.
        """
        applied = _quota(self._service_quotas.get_service_quota, quota.code)
        default = (
            None
            if applied
            else _quota(self._service_quotas.get_aws_default_service_quota, quota.code)
        )
        value = applied or default
        if value is None:
            return None
        problem = why_no_value(value)
        of_aws = quota_value(default)
        return QuotaReading(
            quota=quota,
            applied=quota_value(applied),
            default=quota.default if of_aws is None and problem is None else of_aws,
            in_use=None,
            unknown_because=problem,
        )

    def _with_usage(self, reading: QuotaReading, now: float) -> QuotaReading:
        if reading.is_not_listed or reading.quota.counts is None or self._held is None:
            return reading
        in_use_now = count_in_use(reading.quota, self._held)
        return replace(reading, in_use=in_use_now, in_use_source=UsageSource.JOBS, in_use_as_of=now)


def _quota(read: Callable[..., Any], code: str | None) -> Mapping[str, Any] | None:
    """None if the account, or AWS's defaults, have no value for the code."""
    try:
        return read(ServiceCode=SERVICE_CODE, QuotaCode=code)["Quota"] if code else None
    except ClientError as error:
        if error_code(error) == "NoSuchResourceException":
            return None
        raise


def list_held_instances(
    sagemaker: "SageMakerClient", *, sleep: Callable[[float], None]
) -> tuple[HeldInstances, ...] | None:
    """Instances of all jobs of the account.

    None if more jobs run than can be described in reasonable time.
    """
    names = dict.fromkeys(_names(sagemaker, sleep))
    if len(names) > MOST_DESCRIPTIONS:
        return None
    held: list[HeldInstances] = []
    for name in names:
        held += read_held_instances(dict(sagemaker.describe_training_job(TrainingJobName=name)))
        sleep(BETWEEN_DESCRIPTIONS_SECONDS)
    return tuple(held)


def _names(sagemaker: "SageMakerClient", sleep: Callable[[float], None]) -> Iterator[str]:
    pages = sagemaker.get_paginator("list_training_jobs")
    asked: Any
    for asked in HOLDING:
        for page in pages.paginate(**asked, PaginationConfig={"PageSize": 100}):
            yield from read_job_names(page)
            sleep(BETWEEN_LISTINGS_SECONDS)
