"""Stop what an execution left running."""

from collections.abc import Callable

from traindyno.aws.lab_services import LabServices
from traindyno.core.errors import Throttled
from traindyno.core.outcome import Outcome

# StopTrainingJob is limited to one request per second for the account and region.
SECONDS_BETWEEN_STOPS = 1.0


def stop_runs(
    execution_id: str,
    *,
    services: LabServices,
    may_go_on: Callable[[], bool],
    sleep: Callable[[float], None],
) -> int:
    """How many jobs were told to stop. Their ends arrive as events; what time does not allow is the sweep's to do."""
    services.suites.mark_stopping(execution_id)
    stopped = 0
    for row in services.attempts.list_open(execution_id):
        if not may_go_on():
            break
        if row.end is None and services.attempts.note_stop(row.job_name, Outcome.STOPPED_BY_USER):
            stopped += _stop(row.job_name, services, sleep)
    return stopped


def _stop(job_name: str, services: LabServices, sleep: Callable[[float], None]) -> bool:
    try:
        stopped = services.jobs.stop(job_name)
    except Throttled:
        sleep(2 * SECONDS_BETWEEN_STOPS)
        stopped = services.jobs.stop(job_name)
    sleep(SECONDS_BETWEEN_STOPS)
    return stopped
