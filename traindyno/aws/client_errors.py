"""What botocore's errors carry, read in one place."""

from botocore.exceptions import BotoCoreError, ClientError

THROTTLING = frozenset(
    {"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "RequestThrottled"}
)

ACCESS_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


def error_code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def error_message(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", ""))


def is_throttling(error: ClientError) -> bool:
    return error_code(error) in THROTTLING


def is_refused_condition(error: ClientError) -> bool:
    """DynamoDB: the row is not as the write's condition wants it, and nothing was written."""
    return error_code(error) == "ConditionalCheckFailedException"


def is_access_denied(error: ClientError) -> bool:
    return error_code(error) in ACCESS_DENIED


def is_service_fault(error: ClientError | BotoCoreError) -> bool:
    """The service failed or couldn't be reached: the request may or may not have been carried out."""
    if isinstance(error, ClientError):
        return int(error.response["ResponseMetadata"].get("HTTPStatusCode", 0)) >= 500
    return True
