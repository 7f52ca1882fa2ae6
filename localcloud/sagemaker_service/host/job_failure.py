"""The failure reason of a job, in the words of SageMaker and its training toolkit."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from localcloud.sagemaker_service.host.container_tree import HostTree
from localcloud.sagemaker_service.host.host_training import TrainingEnd
from localcloud.sagemaker_service.jobs.job import FAILURE_REASON_LIMIT

LAST_LINES = 8
KILLED_EXIT_CODE = 137  # 128 + the number of SIGKILL
KEPT_BYTES = 16_384
TORCHRUN_REPORT = re.compile(
    r"^[EW]\d{4} .*torch/distributed/elastic/.*(failed \(exitcode|Sending process)", re.MULTILINE
)


def algorithm_error(trees: Sequence[HostTree], training_end: TrainingEnd, logs: Mapping[str, Path]) -> str:
    """The text that the script wrote to output/failure, or else the end of its log, with the exit code."""
    failed = training_end.first_failed or next(host for host, code in training_end.exit_codes.items() if code)
    exit_code = training_end.exit_codes[failed]
    first_failed_first = sorted(trees, key=lambda tree: tree.host != failed)
    text = _written_failure(first_failed_first) or _user_script_error(exit_code, logs[failed], training_end.command)
    lead, ending = "AlgorithmError: ", f", exit code: {exit_code}"
    if exit_code == KILLED_EXIT_CODE and training_end.oom_kills:
        ending = f" out of memory: the kernel killed {training_end.oom_kills} processes while the job ran{ending}"
    return lead + text[: FAILURE_REASON_LIMIT - len(lead) - len(ending)] + ending


def _written_failure(trees: Sequence[HostTree]) -> str | None:
    for tree in trees:
        if tree.failure.is_file():
            text = tree.failure.read_text(encoding="utf-8", errors="replace").strip()
            if text:
                return text
    return None


def _user_script_error(exit_code: int, log: Path, command: Sequence[str]) -> str:
    message = "\n".join(last_lines(log, LAST_LINES))
    script = " ".join(command)
    # The command is truncated more than the message, which is more useful.
    return f'ExecuteUserScriptError:\nExitCode {exit_code}\nErrorMessage "{message[-640:]}"\nCommand "{script[:160]}"'


def last_lines(log: Path, count: int) -> list[str]:
    """The last lines of the script, without torchrun's report of the failure that follows them."""
    if not log.is_file():
        return []
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - KEPT_BYTES, 0))
        text = file.read().decode(errors="replace")
    of_script = TORCHRUN_REPORT.split(text, maxsplit=1)[0]
    return [line for line in (of_script if of_script.strip() else text).splitlines() if line.strip()][-count:]
