"""What an execution has paid so far, whether or not it has ended, been aborted or failed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traindyno.aws.executions import Execution
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.costs.receipt import Receipt, write_receipt
from traindyno.core.jobs.attempt import Attempt, instance_type_of
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.fallback_cells import run_on
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.warm_pools import read_warm_pools, with_warm_pools
from traindyno.store.attempt_rows import AttemptRow, AttemptRows
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.run_results import load_preparations, load_results
from traindyno.store.suite_rows import SuiteRows


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionReceipt:
    """While ``running_jobs`` are in flight or ``warm_jobs`` keep their instances, more is billed: it is not final."""

    execution_id: str
    status: str
    is_final: bool
    is_simulated: bool
    running_jobs: tuple[str, ...]
    warm_jobs: tuple[str, ...]
    receipt: Receipt


def load_receipt(
    execution: Execution,
    *,
    bucket: ResultsBucket,
    suites: SuiteRows,
    attempts: AttemptRows,
    jobs: TrainingJobs,
    lab: str,
) -> ExecutionReceipt:
    execution_id = execution.execution_id
    results = _load_results(execution_id, bucket=bucket, suites=suites, attempts=attempts)
    running = tuple(_running(results, attempts))
    pools = read_warm_pools(execution_id, lab=lab, suites=suites, jobs=jobs)
    kept_by = tuple(pool.job_name for pool in pools if not pool.is_over)
    return ExecutionReceipt(
        execution_id=execution_id,
        status=execution.status,
        is_final=not execution.is_running and not running and not kept_by,
        is_simulated=any(result.is_simulated for result in results),
        running_jobs=running,
        warm_jobs=kept_by,
        receipt=write_receipt(with_warm_pools(results, pools), running_jobs=running),
    )


def _load_results(
    execution_id: str, *, bucket: ResultsBucket, suites: SuiteRows, attempts: AttemptRows
) -> list[RunResult]:
    """Of runs that have none yet, as far as their attempts tell."""
    recorded_results = [*load_preparations(bucket, execution_id), *load_results(bucket, execution_id)]
    results = [_refreshed(result, attempts) for result in recorded_results]
    recorded = {result.run.run_id for result in results}
    rows = [
        [row for row in map(attempts.read, sorted(run["jobs"])) if row]
        for run in suites.list_runs(execution_id)
        if run.get("jobs") and run["sk"].removeprefix("run#") not in recorded
    ]
    if any(rows):
        suite = read_stored_suite(bucket.read_json(suite_key(execution_id)))
        results += [_unrecorded(jobs, suite) for jobs in rows if jobs]
    return results


def _refreshed(result: RunResult, attempts: AttemptRows) -> RunResult:
    """A run may have been recorded while its job was still being stopped."""
    return replace(result, attempts=tuple(_end(attempt, attempts) for attempt in result.attempts))


def _end(attempt: Attempt, attempts: AttemptRows) -> Attempt:
    row = attempts.read(attempt.job_name) if attempt.billable_seconds is None else None
    return row.end if row and row.end else attempt


def _unrecorded(jobs: list[AttemptRow], suite: Suite) -> RunResult:
    """At the price of the type that it ran on; until that is known, of the dearest that it may run on."""
    run = jobs[0].run
    attempts = sorted((_attempt(row) for row in jobs), key=lambda attempt: attempt.number)
    placed_on = instance_type_of(attempts)
    return build_run_result(
        run_on(suite, run, placed_on) if placed_on and not run.is_preparation else run,
        suite=suite,
        outcome=Outcome.STOPPED_BY_USER,
        attempts=attempts,
        step_log=None,
        price=PaidPrice(usd_per_instance_hour=jobs[0].usd_by_type.get(placed_on or "", jobs[0].usd_per_hour)),
    )


def _attempt(row: AttemptRow) -> Attempt:
    return row.end or Attempt(number=row.number, job_name=row.job_name, submitted_at=row.submitted_at)


def _running(results: list[RunResult], attempts: AttemptRows) -> Iterator[str]:
    for attempt in (attempt for result in results for attempt in result.attempts):
        if attempt.billable_seconds is None and attempt.ended_at is None:
            row = attempts.read(attempt.job_name)
            if row and row.end is None:
                yield attempt.job_name
