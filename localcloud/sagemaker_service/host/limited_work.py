"""Work on a job's files that ends at a limit of time, however long a transfer takes."""

import logging
import threading
import time
from collections.abc import Callable

LOG = logging.getLogger(__name__)
LOOK_AGAIN_SECONDS = 0.2


def is_done_before(is_over: Callable[[], bool], work: Callable[[], object]) -> bool:
    """Does the work, and raises its error. False if ``is_over`` came first: the work is left to its own thread, or its
    error may be that it was ended.
    """
    if is_over():
        return False
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:  # raised again where it is waited for
            LOG.debug("ended with an error", exc_info=True)
            errors.append(error)

    thread = threading.Thread(target=attempt, name="limited work", daemon=True)
    thread.start()
    while thread.is_alive() and not is_over():
        thread.join(LOOK_AGAIN_SECONDS)
    if thread.is_alive() or (errors and is_over()):
        return False
    if errors:
        raise errors[0]
    return True


class UploadTime:
    """The time that all uploads of a job have together, from the end of its processes."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends_at = float("inf")
        self.is_exceeded = False

    def begin(self) -> None:
        self._ends_at = time.monotonic() + self._seconds
        self.is_exceeded = False

    def is_over(self) -> bool:
        return time.monotonic() >= self._ends_at

    def run(self, upload: Callable[[], object]) -> None:
        """Does one of the uploads, or a part of it if the time ends."""
        self.is_exceeded |= not is_done_before(self.is_over, upload)
