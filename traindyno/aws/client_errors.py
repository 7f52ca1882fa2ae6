"""AWS's error codes, and the errors of this project for them."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

from traindyno.core.errors import NextAttempt, ServiceFault, Throttled

# The error codes that botocore treats as throttling, and that of a write that conflicts with a
# transaction.
THROTTLING = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
ACCESS_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
# Every error of a call to AWS.
AwsError = (ClientError, BotoCoreError)


def error_code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def error_message(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", ""))


def is_throttling(error: ClientError | BotoCoreError) -> bool:
    return isinstance(error, ClientError) and error_code(error) in THROTTLING


def is_access_denied(error: ClientError) -> bool:
    return error_code(error) in ACCESS_DENIED


def is_service_fault(error: ClientError | BotoCoreError) -> bool:
    """The service failed or couldn't be reached: the request may or may not have been carried
    out.
    """
    if isinstance(error, ClientError):
        return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500
    return isinstance(error, ConnectionError | HTTPClientError)


def temporary(error: ClientError | BotoCoreError, about: str) -> NextAttempt | None:
    """The error to raise where a later repetition may succeed; None where it can't."""
    if is_throttling(error):
        return Throttled(f"{about}: {error}")
    return ServiceFault(f"{about}: {error}") if is_service_fault(error) else None


@contextmanager
def named_errors() -> Iterator[None]:
    """Throttling is raised as Throttled and a fault of a service as ServiceFault; every other error
    is unchanged.
    """
    try:
        yield
    except AwsError as error:
        named = temporary(error, "a call to AWS failed")
        if named is None:
            raise
        raise named from error
