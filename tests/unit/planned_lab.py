"""A lab in memory whose suite is planned, with the quotas and prices that a test gives."""

import json
from collections.abc import Iterable
from typing import Any

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, no_sleep
from tests.unit.step_log_samples import log_lines
from tests.unit.stubbed import stubbed
from tests.unit.suites import unprepared_document
from traindyno.aws.data_listing import DataListing
from traindyno.aws.quotas import Quotas
from traindyno.core.planning.quotas import Quota, QuotaReading
from traindyno.core.s3_keys import step_log_prefix
from traindyno.core.suite.runs import parse_run
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.finish_run import finish_run
from traindyno.lab.plan_suite import plan_execution
from traindyno.lab.record_run import record_run
from traindyno.lab.submit_run import submit_run


class FixedQuotas(Quotas):
    def __init__(self, applied: int) -> None:
        self._value = applied

    def read(self, quotas: Iterable[Quota], *, now: float) -> dict[str, QuotaReading]:
        seconds = 432_000
        return {
            quota.name: QuotaReading(
                quota=quota, applied=seconds if "run time" in quota.name else self._value, default=None, in_use=0
            )
            for quota in quotas
        }


class NoListing(DataListing):
    """Synthetic data has no objects."""

    def __init__(self) -> None:
        pass


def take_in(
    lab: MemoryLab,
    document: Any,
    *,
    usd: str | None = "1.20",
    instance: str = "ml.g5.xlarge",
    execution_id: str = EXECUTION,
    listing: DataListing | None = None,
) -> None:
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}}
    product = {
        "product": {"attributes": {"usagetype": f"USE1-Train:{instance}"}},
        "terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}},
    }
    with stubbed("pricing") as (client, stubber):
        for _ in ("of the lab's region", *document.get("pricing", {}).get("regions", ())):
            stubber.add_response("get_products", {"PriceList": [json.dumps(product)] if usd else []})
        plan_execution(
            document,
            execution_id=execution_id,
            services=lab.services,
            settings=SETTINGS,
            pricing=client,
            listing=listing or NoListing(),
            now=NOW,
        )


def empty_lab() -> MemoryLab:
    lab = MemoryLab()
    lab.table.items.clear()
    return lab


def planned(applied: int, **changes: Any) -> MemoryLab:
    lab = empty_lab()
    take_in(lab, unprepared_document(**changes))
    check_quotas(EXECUTION, quotas=FixedQuotas(applied), bucket=lab.bucket, now=NOW)
    return lab


def measure(lab: MemoryLab, item: dict[str, Any], *, host_id: str | None = None, step_seconds: float = 0.5) -> None:
    run = parse_run(item["run"])
    submit_run(run, run.run_id, services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    name = list(lab.jobs.jobs)[-1]
    lab.jobs.end(name, "Completed")
    environment, *lines = log_lines(step_seconds=[step_seconds] * 40)
    lines.insert(0, json.dumps(json.loads(environment) | {"host_id": host_id}) + "\n")
    key = f"{step_log_prefix(EXECUTION, run.run_id, name)}rank-00000.1790000000000.jsonl"
    lab.objects.contents[key] = "".join(lines).encode()
    finish_run(name, lab="traindyno", services=lab.services, now=NOW + 500)
    record_run(run, final=None, services=lab.services)
