"""Earlier runs of a suite's cells, as the lab's own rows keep them."""

from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.history import Histories, PastRun, learn_from, work_id_of
from traindyno.core.suite.suite import Suite
from traindyno.store.suite_rows import SuiteRows

LATEST_EXECUTIONS = 5


def read_histories(suite: Suite, suites: SuiteRows) -> Histories:
    """Of the latest executions of the same work."""
    return learn_from(suite, _past_runs(suite, suites))


def _past_runs(suite: Suite, suites: SuiteRows) -> Iterator[PastRun]:
    for execution_id in suites.list_same_work(work_id_of(suite), LATEST_EXECUTIONS):
        facts = suites.read(execution_id) or {}
        for row in suites.list_runs(execution_id):
            if row.get("billable_seconds") is not None and "job_seconds" in row and "max_steps" in facts:
                yield _past_run(row, int(facts["max_steps"]))


def _past_run(row: Mapping[str, Any], max_steps: int) -> PastRun:
    counted = [row.get("warmup_steps"), row.get("steady_steps")]
    step_seconds = row.get("mean_step_seconds")
    return PastRun(
        cell_id=row["cell_id"],
        outcome=Outcome(row["outcome"]),
        attempts=int(row["attempts"]),
        billable_seconds=float(row["billable_seconds"]),
        seconds=float(row["job_seconds"]),
        steps=None if None in counted else sum(int(count) for count in counted if count is not None),
        mean_step_seconds=None if step_seconds is None else float(step_seconds),
        max_steps=max_steps,
        is_simulated=bool(row["is_simulated"]),
    )
