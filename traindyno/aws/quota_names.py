"""Quotas by name, for those whose code is not known: Service Quotas has no search by name."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.planning.quotas import SERVICE_CODE

if TYPE_CHECKING:
    from mypy_boto3_service_quotas import ServiceQuotasClient

PAGE_SIZE = 100  # the largest page that AWS returns, of more than 1,500 quotas


def find_by_name(
    service_quotas: "ServiceQuotasClient", names: Iterable[str], *, service_code: str = SERVICE_CODE
) -> dict[str, Mapping[str, Any]]:
    """Quotas by name. Reads AWS's defaults first, which lack only the quotas that this account alone has, and stops
    when all names are found. A name that is in neither list is left out.
    """
    wanted = set(names)
    found: dict[str, Mapping[str, Any]] = {}
    for row in _rows(service_quotas, service_code):
        if row["QuotaName"] in wanted:
            found.setdefault(row["QuotaName"], row)
        if len(found) == len(wanted):
            break
    return found


def _rows(service_quotas: "ServiceQuotasClient", service_code: str) -> Iterator[Mapping[str, Any]]:
    asked: dict[str, Any] = {"ServiceCode": service_code, "PaginationConfig": {"PageSize": PAGE_SIZE}}
    defaults = service_quotas.get_paginator("list_aws_default_service_quotas").paginate(**asked)
    applied = service_quotas.get_paginator("list_service_quotas").paginate(**asked)
    for page in chain(defaults, applied):
        yield from (row for row in page.get("Quotas", []) if "QuotaName" in row and "QuotaCode" in row)


def read_by_name(service_quotas: "ServiceQuotasClient", name: str, *, service_code: str) -> Mapping[str, Any] | None:
    """The account's applied quota, else AWS's default; None if Service Quotas lists no quota of this name."""
    default = find_by_name(service_quotas, [name], service_code=service_code).get(name)
    if default is None:
        return None
    try:
        answer = service_quotas.get_service_quota(ServiceCode=service_code, QuotaCode=default["QuotaCode"])
    except ClientError as error:
        if error_code(error) == "NoSuchResourceException":
            return default
        raise
    return answer["Quota"]


def quota_value(row: Mapping[str, Any] | None) -> int | None:
    """None without a row, and for a row whose value AWS leaves out."""
    return int(row["Value"]) if row and "Value" in row else None


def why_no_value(row: Mapping[str, Any]) -> str | None:
    if "Value" in row:
        return None
    reason = row.get("ErrorReason", {})
    said = ": ".join(reason[part] for part in ("ErrorCode", "ErrorMessage") if part in reason)
    return f"Service Quotas answers without its value ({said or 'and gives no reason'})"
