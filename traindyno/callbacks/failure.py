"""The outcome for an uncaught exception, and the file from which SageMaker takes its
FailureReason.
"""

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Callable, Mapping, Optional, Tuple, Type

from traindyno.callbacks.full_disk import is_disk_full
from traindyno.core.step_log.line import failure_text

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

OUT_OF_MEMORY = "out_of_memory"
LOSS_DIVERGED = "loss_diverged"
USER_CODE_ERROR = "user_code_error"
STOPPED_BY_USER = "stopped_by_user"

OUT_OF_MEMORY_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "resource_exhausted",
)
PACKAGE = str(Path(__file__).resolve().parent)
LONGEST_MESSAGE = 900  # SageMaker keeps 1024 characters of the failure file
CONTAINER = Path("/sys/fs/cgroup/memory.events")
MACHINE = Path("/proc/vmstat")


def classify(error: BaseException, otherwise: str = USER_CODE_ERROR) -> str:
    """The outcome, as a value of traindyno.core.jobs.outcome.Outcome; an exception may name its own
    as ``outcome``.
    """
    named = getattr(error, "outcome", None)
    if isinstance(named, str):
        return str(named)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return OUT_OF_MEMORY
    if isinstance(error, RuntimeError) and any(
        sign in str(error).lower() for sign in OUT_OF_MEMORY_SIGNS
    ):
        return OUT_OF_MEMORY
    if isinstance(error, KeyboardInterrupt):
        return STOPPED_BY_USER
    if is_disk_full(error):
        return USER_CODE_ERROR
    return otherwise


def describe(error: BaseException, rank: int, place: str = "") -> str:
    """Text about an error.

    ``place`` says where it was raised, and which disk is full; a long message does not displace it.
    """
    text = " ".join(str(error).split()) or "no message"
    if classify(error) == OUT_OF_MEMORY:
        place += memory_limit_text()
    return (
        "rank {}: {}: {}".format(rank, type(error).__name__, text)[: LONGEST_MESSAGE - len(place)]
        + place
    )


def memory_limit_text() -> str:
    """The limit of this process's memory, which the local cloud sets; empty without one."""
    if resource is None:
        return ""
    most = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return (
        ""
        if most == resource.RLIM_INFINITY
        else "; a process may allocate {:.1f} GiB".format(most / 2**30)
    )


def place_in_script(error: BaseException) -> str:
    """Place in the script where an error was raised, as in `` (train.py, line 12)``.

    It is the innermost line that is neither of a package nor of Python; empty without one.
    """
    frames = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [(file, line) for file, line in frames if not _is_installed(file)]
    return " ({}, line {})".format(Path(own[-1][0]).name, own[-1][1]) if own else ""


def _is_installed(file: str) -> bool:
    installed = (str(Path(os.__file__).parent), PACKAGE, "<frozen")
    return file.startswith(installed) or "site-packages" in file or "dist-packages" in file


def failure_path(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("SM_OUTPUT_DIR", "/opt/ml/output")) / "failure"


def report_failure(outcome: str, message: str, environment: Mapping[str, str] = os.environ) -> None:
    """Write the text for SageMaker.

    The first process that fails writes the cause; the others fail because of it.
    """
    text = failure_text(outcome, message)
    # The training toolkit may overwrite the file with the end of stderr, so the text is also
    # written to stderr.
    print(text, file=sys.stderr, flush=True)  # noqa: T201
    path = failure_path(environment)
    try:
        with path.open("x", encoding="utf-8") as failure:
            failure.write(text)
    except FileExistsError:
        return
    except OSError as error:
        print("{} could not be written: {}".format(path, error), file=sys.stderr, flush=True)  # noqa: T201


def reported_failure(environment: Mapping[str, str] = os.environ) -> Tuple[str, str]:
    """Outcome and message that another process of this host wrote, or two empty strings."""
    try:
        text = failure_path(environment).read_text(encoding="utf-8")
        _prefix, outcome, message = text.split(": ", 2)
    except (OSError, ValueError):
        return "", ""
    return outcome, message


def call_on_crash(failed: Callable[[BaseException], None]) -> None:
    """Calls ``failed`` with an uncaught exception, after Python has printed it."""
    previous_hook = sys.excepthook

    def hook(
        kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
    ) -> None:
        previous_hook(kind, error, trace)
        failed(error)

    sys.excepthook = hook


def count_oom_kills() -> int:
    """Counts for this container if it has its own memory limit, else for the machine; 0 if neither
    is known.
    """
    return max(_counter(CONTAINER), _counter(MACHINE))


def _counter(path: Path) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
