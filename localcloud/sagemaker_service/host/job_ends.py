"""How a job ends before its work is done: by an error, at a limit of time, or because it loses its
instances.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud.sagemaker_service.host.container_tree import HostTree
from localcloud.sagemaker_service.host.host_training import TrainingEnd
from localcloud.sagemaker_service.jobs.faults import FaultInjector, JobFault
from localcloud.sagemaker_service.jobs.job import FAILURE_REASON_LIMIT, TrainingJob

LAST_LINES = 8
KILLED_EXIT_CODE = 137  # 128 + the number of SIGKILL
KEPT_BYTES = 16_384
TORCHRUN_REPORT = re.compile(
    r"^[EW]\d{4} .*torch/distributed/elastic/.*(failed \(exitcode|Sending process)", re.MULTILINE
)
LOG = logging.getLogger(__name__)
LOOK_AGAIN_SECONDS = 0.2
PAUSE_SECONDS = 0.5  # the time without instances
STEP_MARK = b'"kind":"step"'


def algorithm_error(
    trees: Sequence[HostTree], training_end: TrainingEnd, logs: Mapping[str, Path]
) -> str:
    """The text that the script wrote to output/failure, or else the end of its log, with the exit
    code.
    """
    failed = training_end.first_failed or next(
        host for host, code in training_end.exit_codes.items() if code
    )
    exit_code = training_end.exit_codes[failed]
    first_failed_first = sorted(trees, key=lambda tree: tree.host != failed)
    failures = (tree.root / "output" / "failure" for tree in first_failed_first)
    texts = (
        path.read_text(encoding="utf-8", errors="replace").strip()
        for path in failures
        if path.is_file()
    )
    text = next(filter(None, texts), None)
    if text is None:
        message = "\n".join(last_lines(logs[failed], LAST_LINES))
        script = " ".join(training_end.command)
        # The command is truncated more than the message, which is more useful.
        text = (
            "ExecuteUserScriptError:\n"
            f"ExitCode {exit_code}\n"
            f'ErrorMessage "{message[-640:]}"\n'
            f'Command "{script[:160]}"'
        )
    lead = "AlgorithmError: "
    ending = f", exit code: {exit_code}"
    if exit_code == KILLED_EXIT_CODE and training_end.oom_kills:
        ending = (
            f" out of memory: the kernel killed {training_end.oom_kills} processes while the job "
            f"ran{ending}"
        )
    return lead + text[: FAILURE_REASON_LIMIT - len(lead) - len(ending)] + ending


def last_lines(log: Path, count: int) -> list[str]:
    """The last lines of the script, without torchrun's report of the failure that follows them."""
    if not log.is_file():
        return []
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - KEPT_BYTES, 0))
        text = file.read().decode(errors="replace")
    of_script = TORCHRUN_REPORT.split(text, maxsplit=1)[0]
    return [
        line for line in (of_script if of_script.strip() else text).splitlines() if line.strip()
    ][-count:]


def is_done_before(is_over: Callable[[], bool], work: Callable[[], object]) -> bool:
    """Does the work, and raises its error.

    False if ``is_over`` came first: the work is left to its own thread, or its error may be that it
    was ended.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotInterruption:
    """The loss of a job's instances after some steps."""

    #: The number of steps since the job's latest start.
    after_steps: int
    #: Whether a SIGTERM comes before, after which files are uploaded.
    has_notice: bool

    def is_due(self, step_logs: Iterable[Path]) -> bool:
        """Whether these logs of first processes have so many steps.

        A step is in the log file within a second.
        """
        return sum(path.read_bytes().count(STEP_MARK) for path in step_logs) >= self.after_steps


def plan_interruptions(
    job: TrainingJob, faults: FaultInjector, steps: int
) -> tuple[SpotInterruption, ...]:
    """An interruption for each time that the job loses its instances.

    The seed and the job's name decide.

    Args:
        job: The training job.
        faults: The faults that a test asks for.
        steps: The steps of all runs of the job together.
    """
    if not job.is_spot or faults.job_fault(job.name) is not JobFault.SPOT_INTERRUPTION:
        return ()
    dice = faults.dice("interruption", job.name)
    fraction = faults.current.spot_notice_fraction
    return tuple(
        SpotInterruption(
            after_steps=dice.randrange(1, max(steps, 2)), has_notice=dice.random() < fraction
        )
        for _ in range(faults.current.spot_interruptions)
    )
