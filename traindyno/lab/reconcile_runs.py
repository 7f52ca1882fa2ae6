"""Find what no event told of: jobs that ended unheard, outlast their execution or its hours, or break its cap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindyno.aws.executions import Executions, ExecutionUnknown
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.lab_names import jobs_prefix
from traindyno.lab.finish_run import finish_run, report_end
from traindyno.lab.overruns import SECONDS_BETWEEN_LOOKS, stop_overruns
from traindyno.lab.pace import Pace
from traindyno.lab.services import LabServices
from traindyno.lab.stop_runs import stop_jobs, stop_runs
from traindyno.store.attempt_rows import AttemptRow

# An event takes seconds; what is older than this and still unheard of is looked at.
QUIET_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """``overdue`` attempts had ended without having been finished; ``left`` of them still are after this sweep."""

    open: int
    overdue: int
    left: int
    stopped: int


def sweep(*, lab: str, services: LabServices, executions: Executions, now: float, pace: Pace) -> Swept:
    rows = [row for row in services.attempts.list_open() if now - row.submitted_at > QUIET_SECONDS]
    # One listing tells which of them still work, however many there are.
    working = services.jobs.working(jobs_prefix(lab), now=now) if rows else {}
    stopped = _stop_what_should_not_run(
        rows, ages=working, services=services, executions=executions, now=now, pace=pace
    )
    overdue = [row for row in rows if row.job_name not in working]
    done = 0
    for row in overdue:
        if not pace.may_go_on():
            break
        _finish(row, lab=lab, services=services, now=now)
        done += 1
        pace.sleep(SECONDS_BETWEEN_LOOKS)
    return Swept(open=len(rows), overdue=len(overdue), left=len(overdue) - done, stopped=stopped)


def _finish(row: AttemptRow, *, lab: str, services: LabServices, now: float) -> None:
    if row.end is None:
        finish_run(row.job_name, lab=lab, services=services, now=now)
    else:
        report_end(row, services=services)


def _stop_what_should_not_run(
    rows: Sequence[AttemptRow],
    *,
    ages: Mapping[str, float],
    services: LabServices,
    executions: Executions,
    now: float,
    pace: Pace,
) -> int:
    stopped = 0
    for name in sorted({row.run.execution_id for row in rows}):
        if _is_over(name, executions):
            stopped += stop_runs(name, services=services, pace=pace)
        elif now > (services.suites.read(name) or {}).get("latest_end", now):
            stopped += stop_jobs(name, Outcome.TIMED_OUT, services=services, pace=pace)
        else:
            own = [row for row in rows if row.run.execution_id == name]
            stopped += stop_overruns(own, name, ages=ages, services=services, now=now, pace=pace)
    return stopped


def _is_over(execution_id: str, executions: Executions) -> bool:
    try:
        return not executions.describe(execution_id).is_running
    except ExecutionUnknown:
        return True  # forgotten by Step Functions, which it does with none that runs
