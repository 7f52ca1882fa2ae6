"""Read the account's quotas; give each lane its concurrency, or refuse the suite with the increase
requests.
"""

from dataclasses import replace
from typing import Any

from traindyno.aws.quotas import Quotas
from traindyno.core.errors import SuiteRefused
from traindyno.core.jobs.job import owner_document
from traindyno.core.planning.plan import plan_again, read_stored_plan, stored_plan
from traindyno.core.planning.preparation_plan import due_preparations
from traindyno.core.planning.quotas import needed_quotas
from traindyno.core.s3_keys import plan_key, suite_key
from traindyno.core.suite.preparation import preparation_seconds
from traindyno.core.suite.runs import waiting_seconds
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.store.results_bucket import ResultsBucket


def check_quotas(
    execution_id: str, *, quotas: Quotas, bucket: ResultsBucket, now: float
) -> dict[str, Any]:
    """The preparations that the state machine runs before the first round, if any.

    Raises SuiteRefused.
    """
    suite = bucket.read_as(suite_key(execution_id), read_stored_suite)
    priced = bucket.read_as(plan_key(execution_id), read_stored_plan)
    readings = quotas.read(needed_quotas(suite), now=now)
    plan = plan_again(suite, priced, readings)
    if plan.refusals:
        raise SuiteRefused(plan.refusals)
    bucket.write_json(plan_key(execution_id), stored_plan(plan))
    due = due_preparations(plan.preparation, execution_id)
    limits = replace(suite.limits, max_job_seconds=preparation_seconds(suite))
    items = [
        {**owner_document(preparation), "timeout_seconds": waiting_seconds(limits)}
        for preparation in due
    ]
    return {"preparations": items} if items else {}
