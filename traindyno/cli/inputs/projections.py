"""The projections that a lab kept of its executions, with what came of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from traindyno.api.lab_target import LabTarget
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projected_actual import ProjectedActual, job_seconds, job_usd
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.s3_keys import plan_key
from traindyno.slices.report_parts import PROJECTED
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptProjection:
    """``of``: what was projected, ``suite`` by its plan or ``training`` by a verdict."""

    execution_id: str
    of: str
    is_simulated: bool
    compared: tuple[ProjectedActual, ...]


def read_projections(target: LabTarget, limit: int) -> Iterator[KeptProjection]:
    """Of the newest ``limit`` executions, those that succeeded and that have one."""
    for execution in target.executions.list_latest(limit):
        name = execution.execution_id
        if execution.status != "SUCCEEDED":
            continue
        for of, read in {**PROJECTED, "suite": _planned}.items():
            if compared := tuple(read(target.results, name)):
                row = target.services.executions.find(name)
                is_simulated = bool(row and row.judgement and row.judgement.is_simulated)
                yield KeptProjection(execution_id=name, of=of, is_simulated=is_simulated, compared=compared)
                break


def _planned(bucket: ResultsBucket, execution_id: str) -> Iterator[ProjectedActual]:
    """The plan's expectation from earlier runs of the same cells, beside the jobs of the runs."""
    plan = bucket.find_as(plan_key(execution_id), read_stored_plan)
    if plan is None or plan.expected.hours is None:
        return
    results, usd = load_results(bucket, execution_id), plan.expected.usd
    seconds = float(plan.expected.hours * SECONDS_PER_HOUR)
    yield ProjectedActual(quantity="time", projected=seconds, actual=job_seconds(results))
    yield ProjectedActual(quantity="cost", projected=None if usd is None else float(usd), actual=job_usd(results))
