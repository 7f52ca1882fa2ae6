"""Watch what running jobs cost: hold back more where the cap has room for it, stop them where it has none."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.admission import needed_reservation_usd
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.preparation import terms_of
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.pace import Pace
from traindyno.lab.services import LabServices
from traindyno.lab.stop_runs import stop_job
from traindyno.sagemaker.job_description import running_seconds
from traindyno.store.attempt_rows import AttemptRow

# The sweep runs every five minutes in AWS.
NEXT_LOOK_SECONDS = 300
# DescribeTrainingJob allows five requests per second for the account; FinishRun makes one for each job that ends, and
# jobs are started, so end, at less than one per second.
SECONDS_BETWEEN_LOOKS = 0.3


def stop_overruns(
    rows: Sequence[AttemptRow],
    execution_id: str,
    *,
    ages: Mapping[str, float],
    services: LabServices,
    now: float,
    pace: Pace,
) -> int:
    """``rows`` are the execution's open attempts, ``ages`` the seconds since the creation of the jobs that still work.

    Only jobs old enough to have used up what they hold are described.
    """
    suite = read_stored_suite(services.bucket.read_fixed_json(suite_key(execution_id)))
    stopped = 0
    for row in filter(lambda row: _may_overrun(row, terms_of(row.run, suite), ages.get(row.job_name)), rows):
        if not pace.may_go_on():
            break
        billed_seconds = _billed_seconds(row, services, now)
        pace.sleep(SECONDS_BETWEEN_LOOKS)
        needed_usd = None if billed_seconds is None else _needed_usd(row, terms_of(row.run, suite), billed_seconds)
        if needed_usd is not None and not _holds(row, needed_usd, suite, services):
            stopped += stop_job(row.job_name, Outcome.COST_STOPPED, services=services, pace=pace)
    return stopped


def _may_overrun(row: AttemptRow, suite: Suite, age_seconds: float | None) -> bool:
    """As if it had been billed from its creation on."""
    if age_seconds is None or row.end is not None or row.stopped_for is not None:
        return False
    return _needed_usd(row, suite, age_seconds) > row.reserved_usd


def _needed_usd(row: AttemptRow, suite: Suite, billed_seconds: float) -> Decimal:
    """SageMaker itself stops a job at its time limit, which may come before the next look."""
    left_seconds = suite.limits.max_job_seconds - billed_seconds
    return needed_reservation_usd(
        billed_seconds=billed_seconds + suite.warm_pool_seconds,
        next_look_seconds=left_seconds if 0 < left_seconds < NEXT_LOOK_SECONDS else NEXT_LOOK_SECONDS,
        instance_count=row.run.cell.settings.instance_count,
        usd_per_hour=row.usd_per_hour,
    )


def _billed_seconds(row: AttemptRow, services: LabServices, now: float) -> float | None:
    """None while nothing is billed yet, and of a job that has ended: what that cost is for FinishRun to read."""
    job = services.jobs.describe(row.job_name)
    return None if job is None else running_seconds(job, now=now)


def _holds(row: AttemptRow, needed_usd: Decimal, suite: Suite, services: LabServices) -> bool:
    execution_id, more_usd = row.run.execution_id, needed_usd - row.reserved_usd
    if more_usd <= 0:
        return True
    if not services.spending.reserve(execution_id, more_usd, cap_usd=suite.limits.max_usd):
        return False
    if not services.attempts.hold(row.job_name, needed_usd):
        services.spending.settle(execution_id, reserved_usd=more_usd, spent_usd=Decimal(0))
    return True
