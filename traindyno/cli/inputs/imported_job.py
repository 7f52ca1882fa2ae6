"""What `traindyno import` reads: the job, for one of the SDK 3 two small files of its drivers, and prices."""

import json
import re
import shlex
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.api.plan_inputs import account_region
from traindyno.aws import clients
from traindyno.aws.prices import read_prices
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.costs.prices import Price, PriceList, cost_usd
from traindyno.core.errors import TraindynoError
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.s3_keys import S3_SCHEME, is_s3_uri
from traindyno.core.step_log.reader import StepLogInvalid, read_step_log
from traindyno.sagemaker.imported.program import (
    DRIVERS_CHANNEL,
    Drivers,
    JobNotImportable,
    channel_uri,
    job_name,
)
from traindyno.sagemaker.imported.suite_of_job import Decisions, ImportedSuite, check_description, import_job
from traindyno.sagemaker.imported.whole_training import measure_log, step_log_uri
from traindyno.sagemaker.job_description import read_billed
from traindyno.sagemaker.launcher import CODE_CHANNEL
from traindyno.store.results_bucket import ResultsBucket

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The SDK's files have some hundred bytes.
MOST_BYTES = 65_536
DRIVERS_FILES = ("sourcecode.json", "distributed.json")


class JobUnknown(TraindynoError):
    """The account has no such training job in the region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """``usd`` is what the job cost on its own type (``is_own``); on another, what it would cost if it were as fast
    there. None: no price is known.
    """

    instance: str
    instance_count: int
    is_own: bool
    price: Price | None
    usd: Decimal | None


def read_job(name: str) -> dict[str, Any]:
    """DescribeTrainingJob's answer; raises JobUnknown."""
    job = TrainingJobs(clients.sagemaker()).describe(name)
    if job is None:
        raise JobUnknown(
            f"{name}: no such training job in {account_region()}, expected the name of one; list them with: aws"
            " sagemaker list-training-jobs"
        )
    return job


def import_described(job: Mapping[str, Any], decisions: Decisions, *, s3: "S3Client") -> ImportedSuite:
    """Raises JobNotImportable. The code of a job of the SDK 3 is many objects, which a person copies to a folder."""
    check_description(job)
    drivers_uri = channel_uri(job, DRIVERS_CHANNEL)
    if drivers_uri is None:
        return import_job(job, decisions)
    # A path of another machine, in a job that anyone may have made, names nothing here.
    folder = f"code-of-{re.sub('[^A-Za-z0-9-]+', '-', job_name(job))}"
    source_code, distributed = (_read_json(f"{drivers_uri.rstrip('/')}/{name}", s3) for name in DRIVERS_FILES)
    drivers = Drivers(source_code=source_code, distributed=distributed, copied_to=folder)
    found = import_job(job, decisions, drivers=drivers)
    code = channel_uri(job, CODE_CHANNEL) or "unknown"
    command = f"aws s3 cp --recursive {shlex.quote(code)} {shlex.quote(folder)}"
    return replace(found, left_out={**found.left_out, "workload.source": f"its code is in S3; copy it: {command}"})


def _read_json(uri: str, s3: "S3Client") -> dict[str, Any]:
    if not is_s3_uri(uri):
        raise JobNotImportable(f"got {uri}, expected the SDK's drivers in S3")
    bucket, _, key = uri.removeprefix(S3_SCHEME).partition("/")
    try:
        content = s3.get_object(Bucket=bucket, Key=key)["Body"].read(MOST_BYTES)
    except ClientError as error:
        raise JobNotImportable(f"{uri} can't be read, which says which script the job runs: {error}") from error
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise JobNotImportable(f"{uri} is no JSON document of the SDK: {error}") from error
    if not isinstance(document, dict):
        raise JobNotImportable(f"{uri}: got {type(document).__name__}, expected a mapping")
    return document


def price_job(
    job: Mapping[str, Any], instances: Iterable[str], prices: PriceList
) -> tuple[int | None, tuple[CostEstimate, ...]]:
    """The billed seconds of each instance, None while they are not known; and the cost by type, the job's own first."""
    own, count, seconds = read_billed(job)
    types = list(dict.fromkeys((own, *instances))) if own else list(instances)
    rows = []
    for name in types:
        price = prices.get(name)
        usd = None if price is None or seconds is None else cost_usd(seconds, count, price.usd_per_hour)
        rows.append(CostEstimate(instance=name, instance_count=count, is_own=name == own, price=price, usd=usd))
    return seconds, tuple(rows)


def read_measured(job: Mapping[str, Any], *, s3: "S3Client") -> MeasuredRun | None:
    """What the job's own step log shows; None if it has none that can be read and measured."""
    uri = step_log_uri(job)
    if not is_s3_uri(uri):
        return None
    bucket, _, prefix = uri.removeprefix(S3_SCHEME).partition("/")
    try:
        found = ResultsBucket(s3, bucket).step_log_files(prefix)
        files = {name: lines for name, lines in found.items() if name.startswith(f"{job_name(job)}/")}
        return measure_log(read_step_log(files)) if files else None
    except (ClientError, StepLogInvalid):
        return None


def prices_of(instances: Iterable[str]) -> PriceList:
    return read_prices(clients.pricing(), instances, region=account_region(), now=time.time())
