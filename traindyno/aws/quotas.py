"""Limits of the account from Service Quotas, and what is in use of them by the quota's own usage metric."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.planning.quotas import SERVICE_CODE, Quota, QuotaReading

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_service_quotas import ServiceQuotasClient

USAGE_WINDOW = timedelta(minutes=15)


class Quotas:
    def __init__(self, service_quotas: "ServiceQuotasClient", cloudwatch: "CloudWatchClient") -> None:
        self._service_quotas = service_quotas
        self._cloudwatch = cloudwatch

    def read(self, quotas: Iterable[Quota], *, now: float) -> dict[str, QuotaReading]:
        """By name; for a quota whose code is not known there is nothing to ask."""
        return {quota.name: self._read(quota, now) for quota in quotas}

    def _read(self, quota: Quota, now: float) -> QuotaReading:
        applied = self._applied(quota.code) if quota.code else None
        default = None if applied or not quota.code else self._default(quota.code)
        found = applied or default or {}
        return QuotaReading(
            quota=quota,
            applied=int(applied["Value"]) if applied else None,
            default=int(default["Value"]) if default else quota.default,
            in_use=self._in_use(found["UsageMetric"], now) if found.get("UsageMetric") else None,
        )

    def _applied(self, code: str) -> Mapping[str, Any] | None:
        """None where no value was ever applied to this account; AWS's default holds then."""
        try:
            return self._service_quotas.get_service_quota(ServiceCode=SERVICE_CODE, QuotaCode=code)["Quota"]
        except ClientError as error:
            if error_code(error) == "NoSuchResourceException":
                return None
            raise

    def _default(self, code: str) -> Mapping[str, Any] | None:
        try:
            answer = self._service_quotas.get_aws_default_service_quota(ServiceCode=SERVICE_CODE, QuotaCode=code)
        except ClientError as error:
            if error_code(error) == "NoSuchResourceException":
                return None
            raise
        return answer["Quota"]

    def _in_use(self, metric: Mapping[str, Any], now: float) -> int | None:
        statistic = metric.get("MetricStatisticRecommendation", "Maximum")
        end = datetime.fromtimestamp(now, UTC)
        answer = self._cloudwatch.get_metric_statistics(
            Namespace=metric["MetricNamespace"],
            MetricName=metric["MetricName"],
            Dimensions=[{"Name": name, "Value": value} for name, value in metric["MetricDimensions"].items()],
            StartTime=end - USAGE_WINDOW,
            EndTime=end,
            Period=300,
            Statistics=[statistic],
        )
        points = sorted(answer["Datapoints"], key=lambda point: point["Timestamp"])
        return int(points[-1][statistic]) if points else None  # type: ignore[literal-required]
