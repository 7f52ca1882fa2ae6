"""A lab in memory whose suite is planned, with the quotas and prices that a test gives."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.core.jobs.written_jobs import WrittenJob
from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, no_sleep
from tests.unit.step_log_samples import log_lines
from tests.unit.stubbed import stubbed
from tests.unit.suites import unprepared_document
from traindyno.aws.data_listing import DataListing
from traindyno.aws.prices import PriceSource
from traindyno.aws.quotas import Quotas
from traindyno.core.jobs.job import AttemptOwner, Job, owner_id, parse_owner, runs_of
from traindyno.core.planning.quotas import Quota, QuotaReading, UsageSource, run_time_quota
from traindyno.core.s3_keys import checkpoints_prefix
from traindyno.core.suite.suite import Run
from traindyno.core.verdict.verdict import Verdict
from traindyno.features import FEATURES
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.finish_run import finish_run
from traindyno.lab.judge_suite import judge_suite
from traindyno.lab.plan_round import plan_next_round
from traindyno.lab.plan_suite import plan_execution
from traindyno.lab.record_run import record_runs
from traindyno.lab.submit_run import submit_run

# A job is billed its start and each of its runs: 300 s for one run, 350 s for two.
START_SECONDS = 250
OWN_SECONDS = 50


class FixedQuotas(Quotas):
    """Quotas of an account without jobs.

    ``applied`` is the value of each quota of instances; None: AWS's defaults.
    """

    def __init__(self, applied: int | None) -> None:
        self._value = applied

    def read(self, quotas: Iterable[Quota], *, now: float) -> dict[str, QuotaReading]:
        return {quota.name: self._read_one(quota, now) for quota in quotas}

    def _read_one(self, quota: Quota, now: float) -> QuotaReading:
        unused = QuotaReading(
            quota=quota, applied=None, default=quota.default, in_use=None, region="us-east-1"
        )
        if quota.code is None:
            return replace(unused, is_not_listed=True)
        applied = replace(unused, applied=None if quota == run_time_quota() else self._value)
        if quota.counts is None:
            return applied
        return replace(applied, in_use=0, in_use_source=UsageSource.JOBS, in_use_as_of=now)


class MemoryBuckets:
    """The call of S3's client that ``DataListing`` makes.

    ``objects`` by URI; a bucket without objects is not there.
    """

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self.objects = dict(objects or {})

    def get_paginator(self, operation_name: str) -> "MemoryBuckets":
        assert operation_name == "list_objects_v2"
        return self

    def paginate(
        self, *, Bucket: str, Prefix: str, Delimiter: str | None = None
    ) -> Iterator[dict[str, Any]]:
        start = f"s3://{Bucket}/"
        if not any(uri.startswith(start) for uri in self.objects):
            message = "The specified bucket does not exist"
            raise ClientError(
                {"Error": {"Code": "NoSuchBucket", "Message": message}}, "ListObjectsV2"
            )
        uris = sorted(uri for uri in self.objects if uri.startswith(f"{start}{Prefix}"))
        if Delimiter:
            below = {uri: uri.removeprefix(f"{start}{Prefix}").partition(Delimiter) for uri in uris}
            folders = sorted(
                {f"{Prefix}{name}{Delimiter}" for name, is_folder, _ in below.values() if is_folder}
            )
            yield from ({"CommonPrefixes": [{"Prefix": folder}]} for folder in folders)
            uris = [uri for uri in uris if not below[uri][1]]
        # Each object on a page of its own; a listing of nothing is a page without Contents.
        yield from ({"Contents": [self._row(uri, start)]} for uri in uris)
        if not uris:
            yield {}

    def _row(self, uri: str, start: str) -> dict[str, Any]:
        content = self.objects[uri]
        etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return {"Key": uri.removeprefix(start), "Size": len(content), "ETag": f'"{etag}"'}


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
        stubber.add_response("get_products", {"PriceList": [json.dumps(product)] if usd else []})
        plan_execution(
            document,
            execution_id=execution_id,
            services=lab.services,
            settings=SETTINGS,
            price_source=PriceSource(region=SETTINGS.region, now=NOW, pricing=client),
            listing=listing or DataListing(MemoryBuckets()),
            now=NOW,
            features=FEATURES,
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


def items_of_round(
    lab: MemoryLab, finished_rounds: int = 0, execution_id: str = EXECUTION
) -> list[Any]:
    """The items of the next round's jobs, of all lanes and waves; none if the search has ended."""
    lanes = plan_next_round(execution_id, finished_rounds=finished_rounds, bucket=lab.bucket)[
        "lanes"
    ]
    return [
        item
        for lane in lanes
        for wave in lane["packs"]
        for item in lab.bucket.read_json(wave["items_key"])
    ]


def runs_of_item(item: Mapping[str, Any]) -> tuple[Run, ...]:
    return runs_of(parse_owner(item))


def measure(
    lab: MemoryLab,
    item: Mapping[str, Any],
    *,
    host_id: str | None = None,
    step_seconds: float = 0.5,
    carried: Mapping[str, "Carried"] | None = None,
) -> None:
    """The item's job starts and completes, and each of its runs is recorded.

    ``carried``: by run id; else all alike.
    """
    owner = parse_owner(item)
    submit_run(
        owner, owner_id(owner), services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep
    )
    name = list(lab.jobs.jobs)[-1]
    lab.jobs.end(
        name, "Completed", billable_seconds=START_SECONDS + OWN_SECONDS * len(runs_of(owner))
    )
    alike = Carried(step_seconds=(step_seconds,) * 40)
    known = {run.run_id: (carried or {}).get(run.run_id, alike) for run in runs_of(owner)}
    for key, content in _files(owner, name, known, host_id).items():
        prefix = checkpoints_prefix(owner.execution_id, owner_id(owner))
        lab.objects.contents[f"{prefix}{key}"] = content
    finish_run(name, services=lab.services, now=NOW + 500)
    record_runs(owner, final=None, services=lab.services)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The steps of a run, and how it ended in a shared job if it is not completed."""

    step_seconds: tuple[float, ...]
    end: Mapping[str, Any] = field(default_factory=dict)

    def log(self, host_id: str | None) -> bytes:
        environment, *lines = log_lines(step_seconds=list(self.step_seconds))
        lines.insert(0, json.dumps(json.loads(environment) | {"host_id": host_id}) + "\n")
        return "".join(lines).encode()


def _files(
    owner: AttemptOwner, job_name: str, carried: Mapping[str, Carried], host_id: str | None
) -> dict[str, bytes]:
    """What the job leaves in its folder of checkpoints."""
    if not isinstance(owner, Job):
        (alone,) = carried.values()
        return {f"step_log/{job_name}/rank-00000.1790000000000.jsonl": alone.log(host_id)}
    written = WrittenJob(job_name=job_name, started_at=NOW + START_SECONDS)
    written.start()
    for run in owner.runs:
        carried_run = carried[run.run_id]
        written.carry_logged(run.run_id, OWN_SECONDS, carried_run.log(host_id), **carried_run.end)
    return written.files


def judge_execution(lab: MemoryLab, execution_id: str = EXECUTION, *, now: float = NOW) -> Verdict:
    return judge_suite(
        execution_id,
        bucket=lab.bucket,
        executions=lab.executions,
        facts={"lab": "traindyno"},
        features=FEATURES,
        now=now,
    )
