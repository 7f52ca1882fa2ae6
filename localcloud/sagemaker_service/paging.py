"""Pages of a list that does not change between two calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.sagemaker_service.api_error import ApiError


def page_of(
    rows: Sequence[object], request: Mapping[str, Any], *, member: str, default_size: int, invalid_token: ApiError
) -> dict[str, Any]:
    token: str = request.get("NextToken") or "0"
    if not token.isdecimal():
        raise invalid_token
    first = int(token)
    last = first + request.get("MaxResults", default_size)
    page: dict[str, Any] = {member: list(rows[first:last])}
    if last < len(rows):
        page["NextToken"] = str(last)
    return page
