"""Answers Service Quotas' operations for the service code ``sagemaker``."""

import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.sagemaker_service.api.operations import Operation, page_of
from localcloud.sagemaker_service.api_error import ApiError
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.quota_table import QuotaTable, ServiceQuota

SERVICE_CODE = "sagemaker"
OPEN_REQUEST = frozenset({"PENDING", "CASE_OPENED"})
INVALID_TOKEN = ApiError("InvalidPaginationTokenException", "The pagination token is not valid")


class QuotasApi:
    """A request is approved after ``approval_seconds``; None leaves it open."""

    def __init__(
        self,
        *,
        store: JobStore,
        quotas: QuotaTable,
        clock: Clock,
        arn_prefix: str,
        approval_seconds: float | None,
    ) -> None:
        self._store = store
        self._quotas = quotas
        self._clock = clock
        self._arn_prefix = arn_prefix
        self._approval_seconds = approval_seconds
        self._requesting = threading.Lock()

    def operations(self) -> dict[str, Operation]:
        return {
            "GetServiceQuota": self._get,
            "ListServiceQuotas": self._list,
            "GetAWSDefaultServiceQuota": lambda request: {"Quota": self._view(self._quota(request), applied=None)},
            "ListAWSDefaultServiceQuotas": self._list_defaults,
            "RequestServiceQuotaIncrease": self._request_increase,
            "GetRequestedServiceQuotaChange": self._get_change,
            "ListRequestedServiceQuotaChangeHistory": self._list_changes,
            "ListRequestedServiceQuotaChangeHistoryByQuota": self._list_changes,
        }

    def _get(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        quota = self._quota(request)
        self._approve_due_requests()
        applied = self._quotas.applied(quota.code)
        if applied is None:
            raise _no_such_resource(f"The request failed because the quota {quota.code} has no applied value")
        return {"Quota": self._view(quota, applied=applied)}

    def _list(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lists the quotas with an applied value only, as AWS does."""
        _check_service(request)
        self._approve_due_requests()
        values = [(quota, self._quotas.applied(quota.code)) for quota in self._quotas.quotas.values()]
        wanted = request.get("QuotaCode")
        rows = [
            self._view(quota, applied=value)
            for quota, value in values
            if value is not None and wanted in {None, quota.code}
        ]
        return _paged("Quotas", rows, request)

    def _list_defaults(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_service(request)
        return _paged("Quotas", [self._view(quota, applied=None) for quota in self._quotas.quotas.values()], request)

    def _request_increase(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        quota = self._quota(request)
        with self._requesting:
            self._approve_due_requests()
            if not quota.is_adjustable:
                raise ApiError("InvalidResourceStateException", f"Quota {quota.code} is not adjustable")
            if any(
                change["QuotaCode"] == quota.code and change["Status"] in OPEN_REQUEST for change in self._changes()
            ):
                raise ApiError(
                    "ResourceAlreadyExistsException",
                    "Only one open service quota increase request is allowed per quota.",
                )
            if request["DesiredValue"] <= self._quotas.limit(quota):
                raise ApiError(
                    "IllegalArgumentException",
                    f"The desired value {request['DesiredValue']:g} must be greater than the current value, "
                    f"{self._quotas.limit(quota):g}",
                )
            change = self._new_change(quota, request["DesiredValue"])
            self._store.put_document("quota_change", change["Id"], change)
        return {"RequestedQuota": change}

    def _new_change(self, quota: ServiceQuota, desired: float) -> dict[str, Any]:
        now_seconds = self._clock.now_ms() / 1000
        return {
            "Id": uuid.uuid4().hex,
            "ServiceCode": SERVICE_CODE,
            "ServiceName": "Amazon SageMaker",
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "DesiredValue": desired,
            "Status": "PENDING",
            "Created": now_seconds,
            "LastUpdated": now_seconds,
            "Requester": "{}",
            "QuotaArn": f"{self._arn_prefix}{SERVICE_CODE}/{quota.code}",
            "GlobalQuota": False,
            "Unit": "None",
        }

    def _get_change(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._approve_due_requests()
        change = self._store.documents("quota_change").get(request["RequestId"])
        if change is None:
            raise _no_such_resource(f"There is no quota request {request['RequestId']}")
        return {"RequestedQuota": change}

    def _list_changes(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._approve_due_requests()
        wanted = {name: request[name] for name in ("ServiceCode", "QuotaCode", "Status") if name in request}
        rows = [change for change in self._changes() if wanted.items() <= change.items()]
        return _paged("RequestedQuotas", rows, request)

    def _changes(self) -> list[dict[str, Any]]:
        return list(self._store.documents("quota_change").values())

    def _approve_due_requests(self) -> None:
        if self._approval_seconds is None:
            return
        now_seconds = self._clock.now_ms() / 1000
        for change in self._changes():
            if change["Status"] in OPEN_REQUEST and change["Created"] + self._approval_seconds <= now_seconds:
                self._quotas.apply(change["QuotaCode"], change["DesiredValue"])
                approved = {**change, "Status": "APPROVED", "LastUpdated": now_seconds}
                self._store.put_document("quota_change", change["Id"], approved)

    def _quota(self, request: Mapping[str, Any]) -> ServiceQuota:
        _check_service(request)
        quota = self._quotas.quotas.get(request["QuotaCode"])
        if quota is None:
            raise _no_such_resource(
                f"The request failed because the specified quota {request['QuotaCode']} does not exist"
            )
        return quota

    def _view(self, quota: ServiceQuota, *, applied: float | None) -> dict[str, Any]:
        return {
            "ServiceCode": SERVICE_CODE,
            "ServiceName": "Amazon SageMaker",
            "QuotaArn": f"{self._arn_prefix}{SERVICE_CODE}/{quota.code}",
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
            f"The service code {request['ServiceCode']} is unknown; this local service knows {SERVICE_CODE}"
        )


def _no_such_resource(message: str) -> ApiError:
    return ApiError("NoSuchResourceException", message)


def _paged(member: str, rows: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> dict[str, Any]:
    return page_of(rows, request, member=member, default_size=100, invalid_token=INVALID_TOKEN)
