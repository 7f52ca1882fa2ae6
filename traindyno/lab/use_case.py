"""One structured log line for each use case, and errors under the names that the state machine
retries.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from sys import exc_info

from traindyno.aws.client_errors import named_errors
from traindyno.core.errors import NextAttempt

LOG = logging.getLogger("traindyno")
LOG.setLevel(logging.INFO)


@dataclass
class Failures:
    """The errors of steps that don't depend on each other: each is logged, and the next step is
    still tried.
    """

    errors: list[Exception] = field(default_factory=list)

    @contextmanager
    def kept(self, **about: str) -> Iterator[None]:
        try:
            with named_errors():
                yield
        except Exception as error:
            LOG.exception("not done; it is tried again later", extra=about)
            self.errors.append(error)

    def raise_first(self) -> None:
        """The errors, beginning with those after which Step Functions repeats the call."""
        for error in sorted(self.errors, key=lambda error: not isinstance(error, NextAttempt)):
            raise error


@contextmanager
def use_case(name: str, **about: str | None) -> Iterator[dict[str, str | float | None]]:
    """Logs ``name`` with the fields that it yields, ``seconds``, and ``error`` if the use case
    failed. The fields begin with ``about``; a use case adds what it finds out.

    Lambda's JSON log format writes each of them as a separate field. Throttling is raised as
    Throttled, a fault of an AWS service as ServiceFault: the state machine retries these names.
    """
    line: dict[str, str | float | None] = {**about}
    began = time.monotonic()
    try:
        with named_errors():
            yield line
    finally:
        error = exc_info()[0]
        line |= {
            "seconds": round(time.monotonic() - began, 3),
            **({"error": error.__name__} if error else {}),
        }
        LOG.log(logging.ERROR if error else logging.INFO, name, extra={"use_case": name, **line})
