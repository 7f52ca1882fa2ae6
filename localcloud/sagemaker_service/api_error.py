"""An error response with AWS's error codes and messages."""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """``code`` is what boto3 shows as ``error.response["Error"]["Code"]``.

    ``members`` are the members of the error's shape besides its message.
    """

    def __init__(
        self, code: str, message: str, *, http_status: int = 400, members: Mapping[str, Any] | None = None
    ) -> None:
        self.members = dict(members or {})
        self.code = code
        self.message = message
        self.http_status = http_status
        super().__init__(f"{code}: {message}")


def validation_error(message: str) -> ApiError:
    return ApiError("ValidationException", message)
