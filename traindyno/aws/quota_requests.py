"""Requests to raise the account's quotas: the requests that AWS has, and a new one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.planning.quota_increases import NeededIncrease, RequestedIncrease, RequestStatus
from traindyno.core.planning.quotas import SERVICE_CODE, QuotaIncrease

if TYPE_CHECKING:
    from mypy_boto3_service_quotas import ServiceQuotasClient


class QuotaRequests:
    def __init__(self, service_quotas: "ServiceQuotasClient") -> None:
        self._service_quotas = service_quotas

    def look_up(self, increase: QuotaIncrease) -> NeededIncrease:
        return NeededIncrease(increase=increase, request=self._find(increase.code) if increase.code else None)

    def send(self, needed: NeededIncrease) -> tuple[NeededIncrease, bool]:
        """The request that now applies, and whether this call sent it; nothing is sent if AWS already has an open
        request for the quota.
        """
        try:
            answer = self._service_quotas.request_service_quota_increase(**needed.increase.request())
        except ClientError as error:
            if error_code(error) == "ResourceAlreadyExistsException":
                return self.look_up(needed.increase), False
            raise
        return NeededIncrease(increase=needed.increase, request=_read(answer["RequestedQuota"])), True

    def _find(self, code: str) -> RequestedIncrease | None:
        """The open request, else the latest."""
        pages = self._service_quotas.get_paginator("list_requested_service_quota_change_history_by_quota").paginate(
            ServiceCode=SERVICE_CODE, QuotaCode=code
        )
        requests = [_read(row) for page in pages for row in page["RequestedQuotas"]]
        return max(requests, key=lambda each: (each.status.is_open, each.requested_at), default=None)


def _read(row: Mapping[str, Any]) -> RequestedIncrease:
    return RequestedIncrease(
        request_id=row["Id"],
        desired_value=int(row["DesiredValue"]),
        status=RequestStatus(row["Status"]),
        requested_at=row["Created"].timestamp(),
        case_id=row.get("CaseId"),
    )
