"""Find what no event told of: jobs that ended unheard, and jobs whose execution is over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindyno.aws.attempt_rows import AttemptRow
from traindyno.aws.executions import Executions
from traindyno.aws.finishing import finish_run, report_end
from traindyno.aws.lab_services import LabServices
from traindyno.aws.stopping import stop_runs

# An event takes seconds; what is older than this and still unheard of is looked at.
QUIET_SECONDS = 60
# DescribeTrainingJob allows five requests per second for the account; the command line wants some of them.
SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """``overdue`` attempts had ended without having been finished; ``left`` of them still are after this sweep."""

    open: int
    overdue: int
    left: int
    stopped: int


def sweep(
    *,
    lab: str,
    services: LabServices,
    executions: Executions,
    now: float,
    may_go_on: Callable[[], bool],
    sleep: Callable[[float], None],
) -> Swept:
    rows = [row for row in services.attempts.list_open() if now - row.submitted_at > QUIET_SECONDS]
    stopped = _stop_orphans(rows, services, executions, may_go_on, sleep)
    working = services.jobs.working(f"{lab}-") if rows else frozenset()
    overdue = [row for row in rows if row.job_name not in working]
    done = 0
    for row in overdue:
        if not may_go_on():
            break
        _finish(row, services, now)
        done += 1
        sleep(SECONDS_BETWEEN_LOOKS)
    return Swept(open=len(rows), overdue=len(overdue), left=len(overdue) - done, stopped=stopped)


def _finish(row: AttemptRow, services: LabServices, now: float) -> None:
    if row.end is None:
        finish_run(row.job_name, services=services, now=now)
    else:
        report_end(row, services=services)


def _stop_orphans(
    rows: Sequence[AttemptRow],
    services: LabServices,
    executions: Executions,
    may_go_on: Callable[[], bool],
    sleep: Callable[[float], None],
) -> int:
    over = [name for name in {row.run.execution_id for row in rows} if not executions.describe(name).is_running]
    return sum(stop_runs(name, services=services, may_go_on=may_go_on, sleep=sleep) for name in over)
