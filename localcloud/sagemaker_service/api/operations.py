"""What the services' operations share: their signature, tags, and pages of lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localcloud.sagemaker_service.api_error import ApiError

# An operation gets a request's members and returns the answer's. It raises ApiError.
Operation = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def tags_of(request: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}


def tag_list(tags: Mapping[str, str]) -> dict[str, Any]:
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def page_of(
    rows: Sequence[object], request: Mapping[str, Any], *, member: str, default_size: int, invalid_token: ApiError
) -> dict[str, Any]:
    """One page of ``rows``, which do not change between two calls. Raises ``invalid_token``."""
    token: str = request.get("NextToken") or "0"
    if not token.isdecimal():
        raise invalid_token
    first = int(token)
    last = first + request.get("MaxResults", default_size)
    page: dict[str, Any] = {member: list(rows[first:last])}
    if last < len(rows):
        page["NextToken"] = str(last)
    return page
