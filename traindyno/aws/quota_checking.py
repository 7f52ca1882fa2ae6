"""See what the account allows, and give each lane the concurrency that fits, or refuse with what would help."""

from traindyno.aws.quotas import Quotas
from traindyno.aws.results_bucket import ResultsBucket
from traindyno.core.documents import from_document, to_document
from traindyno.core.errors import SuiteRefused
from traindyno.core.layout import plan_key, suite_key
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.quotas import needed_quotas
from traindyno.core.planning.refusals import refusal_lines
from traindyno.core.suites.suite_file import read_stored_suite


def check_quotas(execution_id: str, *, quotas: Quotas, bucket: ResultsBucket, now: float) -> None:
    suite = read_stored_suite(bucket.read_json(suite_key(execution_id)))
    priced = from_document(bucket.read_json(plan_key(execution_id)), Plan)
    readings = quotas.read(needed_quotas(suite, priced.cells), now=now)
    prices = {lane.instance_type: lane.price for lane in priced.lanes if lane.price}
    histories = {history.cell_id: history for history in priced.history}
    plan = plan_suite(suite, execution_id=execution_id, prices=prices, quotas=readings, histories=histories)
    if plan.refusals:
        raise SuiteRefused([line for refusal in plan.refusals for line in refusal_lines(refusal)])
    bucket.write_json(plan_key(execution_id), to_document(plan))
