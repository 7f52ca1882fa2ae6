"""The report of an execution that has ended, or why it has none."""

import time
from dataclasses import dataclass
from pathlib import Path

from traindyno.api.lab_target import LabTarget
from traindyno.aws.executions import UNSUCCESSFUL, Execution
from traindyno.core.errors import PreparationFailed, SuiteInvalid, SuiteRefused, TraindynoError
from traindyno.core.s3_keys import report_data_key, report_html_key
from traindyno.core.verdict.cell_runs import is_measured
from traindyno.core.verdict.report_data import Report, parse_report
from traindyno.lab.judge_suite import report_results
from traindyno.report.html import render
from traindyno.store.results import load_results

# The errors that end an execution before any of its runs started.
REFUSALS = {SuiteInvalid.__name__, SuiteRefused.__name__, PreparationFailed.__name__}


class ExecutionFailed(TraindynoError):
    """The execution was refused, failed or was stopped; ``lines`` say what is known of the
    reason.
    """

    def __init__(self, ended: Execution, lines: list[str]) -> None:
        self.ended = ended
        self.lines = tuple(lines)
        super().__init__("\n".join(lines))

    @property
    def is_refusal(self) -> bool:
        return self.ended.error in REFUSALS


class ReportMissing(TraindynoError):
    """The execution has no report: it is still running, or it ended before the first result."""


class ReportUnwritable(TraindynoError):
    """The folder for the report can't be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReport:
    """The stored report of an execution.

    ``html`` is the page. ``why_incomplete`` says why the execution ended before its verdict; it is
    empty if it did not.
    """

    report: Report
    html: bytes
    why_incomplete: tuple[str, ...] = ()


def read_report(target: LabTarget, ended: Execution) -> FoundReport:
    """The stored report; for an execution that was stopped or failed, the report of what it
    measured until then.

    Raises ExecutionFailed if it measured nothing, or ReportMissing.
    """
    if ended.status in UNSUCCESSFUL:
        name = ended.execution_id
        why = _failure_lines(ended)
        if ended.error in REFUSALS or not any(map(is_measured, load_results(target.results, name))):
            raise ExecutionFailed(ended, why)
        facts = {"lab": target.deployment.lab, "status": why[0].partition(": ")[2]}
        made = report_results(
            name,
            bucket=target.results,
            facts=facts,
            features=target.features,
            now=ended.ended_at or time.time(),
        )
        page = render(made, target.features).encode()
        return FoundReport(report=made, html=page, why_incomplete=tuple(why))
    report = target.results.find_as(report_data_key(ended.execution_id), parse_report)
    if report is None:
        raise ReportMissing(
            f"{ended.execution_id} ({ended.status.lower()}) has no report yet; see: traindyno watch"
        )
    return FoundReport(report=report, html=target.results.read(report_html_key(ended.execution_id)))


def require_success(ended: Execution) -> None:
    """Raises ExecutionFailed."""
    if ended.status in UNSUCCESSFUL:
        raise ExecutionFailed(ended, _failure_lines(ended))


def write_report(folder: Path, execution_id: str, content: bytes, suffix: str = ".html") -> Path:
    """The file's absolute path. Raises ReportUnwritable."""
    path = (folder / f"{execution_id}{suffix}").resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise ReportUnwritable(
            f"the report can't be written to {path}: {error.strerror}; name another folder with: "
            f"traindyno report {execution_id} --output FOLDER"
        ) from error
    return path


def _failure_lines(ended: Execution) -> list[str]:
    status = (
        f"{ended.execution_id}: {ended.status.lower()}{f': {ended.error}' if ended.error else ''}"
    )
    return [line for line in (status, ended.cause) if line]
