"""The account's quotas: AWS's defaults and the values applied here, and whether one more job
fits.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files

from localcloud.sagemaker_service.api_error import ApiError
from localcloud.sagemaker_service.instance_table import LOCAL_TYPES, is_local
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_store import JobStore
from traindyno.core.planning.quotas import account_quota, instance_quota, job_size_quota
from traindyno.core.suite.choices import Purchase

PER_TYPE_NAMES = {"training": "{} for training job usage", "spot": "{} for spot training job usage"}
LOCAL_DEFAULT = 16
HOW_TO_INCREASE = (
    "Please use AWS Service Quotas to request an increase for this quota. If AWS Service Quotas "
    "is not available, contact AWS support to request an increase for this quota."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceQuota:
    code: str
    name: str
    default: float
    is_adjustable: bool

    @property
    def counts_instances(self) -> bool:
        return self.name.endswith(" usage") or "umber of instances" in self.name


class QuotaTable:
    """Applied values come from the service's administration.

    ``granted`` is applied to every quota of instances without an applied value; None leaves AWS's
    default.
    """

    def __init__(self, store: JobStore, granted: float | None) -> None:
        self._store = store
        self._granted = granted
        self._admitting = threading.Lock()
        self.quotas = {quota.code: quota for quota in _read_quotas()}
        self._by_name = {quota.name: quota for quota in self.quotas.values()}
        self._applied_since: dict[str, float] = store.documents("applied_quota")

    def applied(self, code: str) -> float | None:
        granted = self._granted if self.quotas[code].counts_instances else None
        return self._applied_since.get(code, granted)

    def apply(self, code: str, value: float) -> None:
        self._applied_since[code] = value
        self._store.write_document("applied_quota", code, value)

    def limit(self, quota: ServiceQuota) -> float:
        applied = self.applied(quota.code)
        return quota.default if applied is None else applied

    @contextmanager
    def admission(self, job: TrainingJob) -> Iterator[None]:
        """Blocks other admissions while the job is added.

        Raises ApiError if the job would exceed a quota.
        """
        purchase = Purchase.SPOT if job.is_spot else Purchase.ON_DEMAND
        with self._admitting:
            in_use = self._store.instances_in_use(is_spot=job.is_spot)
            own_use = in_use.get(job.instance_type, 0)
            self._check_one(
                instance_quota(job.instance_type, purchase).name, own_use, job.instance_count
            )
            if not is_local(job.instance_type):
                across = sum(count for name, count in in_use.items() if not is_local(name))
                self._check_one(job_size_quota(purchase).name, 0, job.instance_count)
                self._check_one(account_quota(purchase).name, across, job.instance_count)
            yield

    def _check_one(self, name: str, in_use: int, wanted: int) -> None:
        quota = self._by_name.get(name)
        limit = 0 if quota is None else self.limit(quota)
        if in_use + wanted > limit:
            raise ApiError(
                "ResourceLimitExceeded",
                f"The account-level service limit '{name}' is {limit:g} Instances, with current "
                f"utilization of {in_use} Instances and a request delta of {wanted} Instances. "
                f"{HOW_TO_INCREASE}",
            )


def _read_quotas() -> Iterator[ServiceQuota]:
    table = json.loads(
        files("traindyno.core.planning.data").joinpath("quotas.json").read_text(encoding="utf-8")
    )
    for name, row in table["account_level"].items():
        yield ServiceQuota(
            code=row["code"], name=name, default=row["default"], is_adjustable=row["adjustable"]
        )
    for instance_type, rows in table["per_instance"].items():
        for kind, row in rows.items():
            if kind in PER_TYPE_NAMES:
                name = PER_TYPE_NAMES[kind].format(instance_type)
                yield ServiceQuota(
                    code=row["code"], name=name, default=row["default"], is_adjustable=True
                )
    for instance_type in sorted(LOCAL_TYPES):
        for kind, pattern in PER_TYPE_NAMES.items():
            code = f"L-{instance_type.replace('.', '-').upper()}-{kind.replace('_', '-').upper()}"
            yield ServiceQuota(
                code=code,
                name=pattern.format(instance_type),
                default=LOCAL_DEFAULT,
                is_adjustable=False,
            )
