"""Requests by a role that was created a moment ago: IAM takes seconds until its permissions hold
everywhere.
"""

from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import ACCESS_DENIED, error_code

SECONDS_FOR_IAM = 60
SECONDS_BETWEEN_TRIES = 5

Answer = TypeVar("Answer")


def as_new_role(ask: Callable[[], Answer], *, sleep: Callable[[float], None]) -> Answer:
    """Repeat ``ask`` while it is denied, for a minute; any other error is raised at once."""
    for _ in range(SECONDS_FOR_IAM // SECONDS_BETWEEN_TRIES):
        try:
            return ask()
        except ClientError as error:
            if error_code(error) not in ACCESS_DENIED:
                raise
            sleep(SECONDS_BETWEEN_TRIES)
    return ask()
