"""Take a suite in: check it, price it, and keep both before anything is started."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from traindyno.aws.data_listing import DataListing
from traindyno.aws.prices import read_prices
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import SuiteRefused
from traindyno.core.planning.history import work_id_of
from traindyno.core.planning.plan import plan_suite, stored_plan
from traindyno.core.planning.preparation_plan import planned_instances
from traindyno.core.s3_keys import plan_key, suite_key
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.suite_file import parse_suite, stored_suite
from traindyno.lab.token_planning import plan_tokens
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.store.past_runs import read_histories
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.suite_rows import SuiteRows
from traindyno.store.token_cache import TokenCache

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient


def take_in_suite(
    document: Mapping[str, Any],
    *,
    execution_id: str,
    settings: JobSettings,
    pricing: "PricingClient",
    listing: DataListing,
    bucket: ResultsBucket,
    suites: SuiteRows,
    now: float,
) -> None:
    """Raises SuiteInvalid or SuiteRefused with everything that is wrong."""
    suite = parse_suite(document)
    cells = expand_cells(suite)
    prices = read_prices(pricing, planned_instances(suite, cells), region=settings.region, now=now)
    histories = read_histories(suite, suites)
    tokens = plan_tokens(
        suite, cells, execution_id=execution_id, settings=settings, listing=listing, cache=TokenCache(bucket), now=now
    )
    plan = plan_suite(suite, execution_id=execution_id, prices=prices, quotas={}, histories=histories, tokens=tokens)
    if plan.refusals:
        raise SuiteRefused([refusal.reason for refusal in plan.refusals])
    bucket.write_json(suite_key(execution_id), stored_suite(suite))
    bucket.write_json(plan_key(execution_id), stored_plan(plan))
    facts = {
        "execution_id": execution_id,
        "name": suite.name,
        "started_at": now,
        "cell_count": len(cells),
        "run_count": plan.run_count,
        "max_usd": suite.limits.max_usd,
        "goal": suite.goal.kind.value,
        "max_steps": suite.measurement.max_steps,
        "warm_pool_seconds": suite.warm_pool_seconds,
        "latest_end": now + float(suite.limits.max_hours * SECONDS_PER_HOUR),
        "prices": to_document(prices),
    }
    suites.create(execution_id, facts)
    suites.note_work(work_id_of(suite), execution_id, now)
