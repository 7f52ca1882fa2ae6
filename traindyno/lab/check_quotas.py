"""See what the account allows, and give each lane the concurrency that fits, or refuse with what would help."""

from dataclasses import replace
from typing import Any

from traindyno.aws.quotas import Quotas
from traindyno.core.errors import SuiteRefused
from traindyno.core.planning.lane_plan import LanePlan
from traindyno.core.planning.plan import plan_suite, read_stored_plan, stored_plan
from traindyno.core.planning.preparation_plan import PreparationPlan, due_preparations
from traindyno.core.planning.quotas import needed_quotas
from traindyno.core.planning.refusals import refusal_lines
from traindyno.core.s3_keys import plan_key, suite_key
from traindyno.core.suite.preparation import owner_document, preparation_seconds
from traindyno.core.suite.runs import waiting_seconds
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.store.results_bucket import ResultsBucket


def check_quotas(execution_id: str, *, quotas: Quotas, bucket: ResultsBucket, now: float) -> dict[str, Any]:
    """What the state machine has to do before the first round: nothing, or the preparations that are due."""
    suite = read_stored_suite(bucket.read_json(suite_key(execution_id)))
    priced = read_stored_plan(bucket.read_json(plan_key(execution_id)))
    tokens = priced.preparation.tokens if priced.preparation else ()
    readings = quotas.read(needed_quotas(suite, priced.cells), now=now)
    parts: list[LanePlan | PreparationPlan] = [*priced.lanes, *([priced.preparation] if priced.preparation else [])]
    fallbacks = [price for lane in priced.lanes for price in lane.fallback_prices]
    prices = {price.instance_type: price for price in (*(part.price for part in parts), *fallbacks) if price}
    histories = {history.cell_id: history for history in priced.history}
    plan = plan_suite(
        suite,
        execution_id=execution_id,
        prices=prices,
        quotas=readings,
        histories=histories,
        tokens=tokens,
        memory=priced.memory,
        loss_spread=priced.loss_spread,
        region_prices=priced.region_prices,
    )
    if plan.refusals:
        raise SuiteRefused([line for refusal in plan.refusals for line in refusal_lines(refusal)])
    bucket.write_json(plan_key(execution_id), stored_plan(plan))
    due = due_preparations(plan.preparation, execution_id)
    limits = replace(suite.limits, max_job_seconds=preparation_seconds(suite))
    items = [{**owner_document(each), "timeout_seconds": waiting_seconds(limits)} for each in due]
    return {"preparations": items} if items else {}
