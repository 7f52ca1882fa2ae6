"""Answers Service Quotas' operations for the service code ``sagemaker``."""

from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.environment import ACCOUNT, REGION
from localcloud.sagemaker_service.api_error import ApiError, Operation, page_of
from localcloud.sagemaker_service.jobs.quota_table import QuotaTable, ServiceQuota

SERVICE_CODE = "sagemaker"
INVALID_TOKEN = ApiError("InvalidPaginationTokenException", "The pagination token is not valid")


class QuotasApi:
    def __init__(self, quotas: QuotaTable) -> None:
        self._quotas = quotas

    def operations(self) -> dict[str, Operation]:
        return {
            "GetServiceQuota": self._get,
            "ListServiceQuotas": self._list,
            "GetAWSDefaultServiceQuota": lambda request: {
                "Quota": self._view(self._quota(request), applied=None)
            },
            "ListAWSDefaultServiceQuotas": self._list_defaults,
        }

    def _get(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        quota = self._quota(request)
        applied = self._quotas.applied(quota.code)
        if applied is None:
            raise _no_such_resource(
                f"The request failed because the quota {quota.code} has no applied value"
            )
        return {"Quota": self._view(quota, applied=applied)}

    def _list(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lists the quotas with an applied value only, as AWS does."""
        _check_service(request)
        values = [
            (quota, self._quotas.applied(quota.code)) for quota in self._quotas.quotas.values()
        ]
        wanted = request.get("QuotaCode")
        rows = [
            self._view(quota, applied=value)
            for quota, value in values
            if value is not None and wanted in {None, quota.code}
        ]
        return _paged(rows, request)

    def _list_defaults(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_service(request)
        return _paged(
            [self._view(quota, applied=None) for quota in self._quotas.quotas.values()],
            request,
        )

    def _quota(self, request: Mapping[str, Any]) -> ServiceQuota:
        _check_service(request)
        quota = self._quotas.quotas.get(request["QuotaCode"])
        if quota is None:
            raise _no_such_resource(
                f"The request failed because the specified quota {request['QuotaCode']} does not "
                "exist"
            )
        return quota

    def _view(self, quota: ServiceQuota, *, applied: float | None) -> dict[str, Any]:
        return {
            "ServiceCode": SERVICE_CODE,
            "ServiceName": "Amazon SageMaker",
            "QuotaArn": f"arn:aws:servicequotas:{REGION}:{ACCOUNT}:{SERVICE_CODE}/{quota.code}",
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "Value": quota.default if applied is None else applied,
            "Unit": "None",
            "Adjustable": quota.is_adjustable,
            "GlobalQuota": False,
        }


def _check_service(request: Mapping[str, Any]) -> None:
    if request["ServiceCode"] != SERVICE_CODE:
        raise _no_such_resource(
            f"The service code {request['ServiceCode']} is unknown; this local service knows "
            f"{SERVICE_CODE}"
        )


def _no_such_resource(message: str) -> ApiError:
    return ApiError("NoSuchResourceException", message)


def _paged(rows: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> dict[str, Any]:
    return page_of(rows, request, member="Quotas", invalid_token=INVALID_TOKEN)
