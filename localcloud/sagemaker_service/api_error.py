"""An error response with AWS's error codes and messages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# If the request names no other number
ROWS_OF_A_PAGE = 100
# An operation gets a request's members and returns the answer's. It raises ApiError.
Operation = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class ApiError(Exception):
    """An error response of AWS.

    Args:
        code: What boto3 shows as ``error.response["Error"]["Code"]``.
        message: The message of the response.
        http_status: Its status.
        members: The members of the error's shape besides its message.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        http_status: int = 400,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        self.members = dict(members or {})
        self.code = code
        self.message = message
        self.http_status = http_status
        super().__init__(f"{code}: {message}")


def validation_error(message: str) -> ApiError:
    return ApiError("ValidationException", message)


def tags_of(request: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}


def tag_list(tags: Mapping[str, str]) -> dict[str, Any]:
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def page_of(
    rows: Sequence[object],
    request: Mapping[str, Any],
    *,
    member: str,
    invalid_token: ApiError,
) -> dict[str, Any]:
    """One page of rows that do not change between two calls.

    Args:
        rows: All rows.
        request: The request, with the token of the page before and the number of rows.
        member: The name of the answer's list.
        invalid_token: The error for a token that no page gave; it is raised.
    """
    token: str = request.get("NextToken") or "0"
    if not token.isdecimal():
        raise invalid_token
    first = int(token)
    last = first + request.get("MaxResults", ROWS_OF_A_PAGE)
    page: dict[str, Any] = {member: list(rows[first:last])}
    if last < len(rows):
        page["NextToken"] = str(last)
    return page
