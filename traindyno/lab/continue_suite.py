"""What an execution takes over from the one that it continues: its results, spending and code."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from traindyno.core.costs.quantity_text import exact_usd_text
from traindyno.core.errors import SuiteRefused
from traindyno.core.jobs.outcome import OWN_FAILURES, Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.plan import Plan, read_stored_plan
from traindyno.core.run.tokens import TokenSet
from traindyno.core.s3_keys import plan_key, suite_key
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite, suite_document
from traindyno.core.verdict.cell_runs import is_measured
from traindyno.store.executions import ExecutionRow, ExecutionRows
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.spending import Spending, SpendingRow

# Beside the suite's fields in an execution's input: the execution that it continues, and, by cell
# id, the batches that searches probe first and the labels of another suite's cells.
CONTINUES = "continues"
FIRST_BATCHES = "first_batches"
CELL_LABELS = "cell_labels"
BESIDE_SUITE = (CONTINUES, FIRST_BATCHES, CELL_LABELS)


class ContinueServices(Protocol):
    bucket: ResultsBucket
    executions: ExecutionRows
    spending: Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """Earlier execution that another one continues.

    ``results`` are the results of runs that don't run again. ``spending`` counts under the new
    amount.
    """

    row: ExecutionRow
    plan: Plan
    results: tuple[RunResult, ...]
    spending: SpendingRow

    @property
    def tokens(self) -> tuple[TokenSet, ...]:
        return self.plan.preparation.tokens if self.plan.preparation else ()


def split_input(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The suite's document, and what is beside it."""
    if not isinstance(document, Mapping):
        return document, {}
    beside = {name: document[name] for name in BESIDE_SUITE if name in document}
    return {name: value for name, value in document.items() if name not in beside}, beside


def read_continued(
    suite: Suite, earlier_id: str, *, execution_id: str, services: ContinueServices
) -> Continued:
    """Raises SuiteRefused."""
    bucket = services.bucket
    row = services.executions.find(earlier_id)
    before = bucket.find_as(suite_key(earlier_id), read_stored_suite)
    if row is None or before is None:
        raise SuiteRefused([f"{earlier_id} started no job in this lab: run the suite without it"])
    if row.continued_by not in (None, execution_id):
        latest = row.continued_by
        raise SuiteRefused([f"{earlier_id} is continued by {latest} already: continue {latest}"])
    spending = services.spending.read(earlier_id)
    problems = [
        f"{path}: it is another one than in {earlier_id}: only limits may differ"
        for path in _differences(suite_document(before), suite_document(suite))
    ]
    if spending.exposed_usd >= suite.limits.max_usd:
        problems.append(
            f"limits.max_usd: got {exact_usd_text(suite.limits.max_usd)}, of which {earlier_id} "
            f"has used {exact_usd_text(spending.exposed_usd)}: expected more"
        )
    if problems:
        raise SuiteRefused(problems)
    results = load_results(bucket, earlier_id)
    return Continued(
        row=row,
        plan=bucket.read_as(plan_key(earlier_id), read_stored_plan),
        results=tuple(result for result in results if _counts(result, before, suite)),
        spending=spending,
    )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """The fields of the suite and of its parts that have another value."""
    for name in {**before, **after}:
        value = after.get(name)
        earlier = before.get(name)
        if name == "limits" or value == earlier:
            continue
        if isinstance(value, dict) and isinstance(earlier, dict):
            names = sorted(value.keys() | earlier.keys())
            yield from (f"{name}.{key}" for key in names if value.get(key) != earlier.get(key))
        else:
            yield name


def _counts(result: RunResult, before: Suite, after: Suite) -> bool:
    """Whether the run is not repeated: it was measured, or failed by its own settings.

    A long run that was lost counts once, as in one execution: its cell runs long again.
    """
    if result.outcome is Outcome.TIMED_OUT and _run_limits(before) != _run_limits(after):
        return False
    is_first_long_run = result.run.trial == before.measurement.trials + 1
    is_own = result.outcome in {*OWN_FAILURES, Outcome.OUTPACED}
    return is_measured(result) or is_own or is_first_long_run


def _run_limits(suite: Suite) -> tuple[int, int | None]:
    return suite.limits.max_job_seconds, suite.limits.max_run_seconds
