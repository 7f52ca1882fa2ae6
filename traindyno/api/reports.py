"""The report of an execution that has ended, or why it has none."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindyno.api.lab_target import LabTarget
from traindyno.aws.executions import Execution
from traindyno.core.errors import PreparationFailed, SuiteInvalid, SuiteRefused, TraindynoError
from traindyno.core.s3_keys import report_data_key, report_html_key
from traindyno.core.verdict.report_data import Report, parse_report

# The errors that end an execution before any of its runs started.
REFUSALS = {SuiteInvalid.__name__, SuiteRefused.__name__, PreparationFailed.__name__}
UNSUCCESSFUL = {"FAILED", "TIMED_OUT", "ABORTED"}


class ExecutionFailed(TraindynoError):
    """The execution was refused, failed or was stopped; ``lines`` say what is known of the reason."""

    def __init__(self, ended: Execution, lines: list[str]) -> None:
        self.ended, self.lines = ended, tuple(lines)
        super().__init__("\n".join(lines))

    @property
    def is_refusal(self) -> bool:
        return self.ended.error in REFUSALS


class ReportMissing(TraindynoError):
    """The execution has no report: it is still running, or it ended before the first result."""


class ReportUnwritable(TraindynoError):
    """The folder for the report can't be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    """``document`` is the data as it is stored."""

    document: dict[str, Any]
    report: Report


def read_report(target: LabTarget, ended: Execution) -> StoredReport:
    """Raises ExecutionFailed, or ReportMissing."""
    if ended.status in UNSUCCESSFUL:
        raise ExecutionFailed(ended, _failure_lines(target, ended))
    found = target.results.find_as(
        report_data_key(ended.execution_id), lambda stored: StoredReport(document=stored, report=parse_report(stored))
    )
    if found is None:
        raise ReportMissing(f"{ended.execution_id} ({ended.status.lower()}) has no report yet; see: traindyno watch")
    return found


def read_page(target: LabTarget, execution_id: str) -> bytes:
    """The report's HTML."""
    return target.results.read(report_html_key(execution_id))


def write_report(folder: Path, execution_id: str, content: bytes) -> Path:
    """The file's absolute path. Raises ReportUnwritable."""
    path = (folder / f"{execution_id}.html").resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise ReportUnwritable(
            f"the report can't be written to {path}: {error.strerror}; name another folder with: traindyno report "
            f"{execution_id} --output FOLDER"
        ) from error
    return path


def _failure_lines(target: LabTarget, ended: Execution) -> list[str]:
    is_own = ended.error == PreparationFailed.__name__  # a script of the suite, which may fill other disks
    why_full = None if is_own else target.find_full_disk(cause=ended.cause or "")
    status = f"{ended.execution_id}: {ended.status.lower()}{f': {ended.error}' if ended.error else ''}"
    return [line for line in (status, why_full, ended.cause) if line]
