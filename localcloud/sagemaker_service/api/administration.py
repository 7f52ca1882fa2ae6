"""Answers the paths that are not AWS's, such as health, faults and quotas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cattrs

from localcloud.sagemaker_service.api_error import ApiError, validation_error
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import TERMINAL, TrainingJob, billed_seconds
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.quota_table import QuotaTable

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    """The operations that tests and the lab's commands use beside AWS's."""

    store: JobStore
    faults: FaultInjector
    quotas: QuotaTable
    clock: Clock
    #: Further fields of the answer about health.
    facts: Mapping[str, Any]
    #: Ends a job's processes and returns their number.
    kill: Callable[[TrainingJob], int]

    def _answers(self) -> dict[tuple[str, str], Answer]:
        return {
            ("GET", "/health"): lambda _: {
                "status": "ok",
                **self.facts,
                "jobs": self.store.count_by_status(),
                "undelivered_events": self.store.pending_event_count(),
            },
            ("GET", "/_local/clock"): lambda _: {"now_ms": self.clock.now_ms()},
            ("GET", "/_local/ledger"): lambda _: {
                "rows": [
                    _ledger_row(job)
                    for job in self.store.select("1 = 1", (), "created_ms, name", -1)
                ]
            },
            ("GET", "/_local/faults"): lambda _: cattrs.unstructure(self.faults.current),
            ("POST", "/_local/faults"): lambda document: cattrs.unstructure(
                self.faults.replace(document)
            ),
            ("POST", "/_local/quotas"): self._apply_quotas,
            ("POST", "/_local/kill"): self._kill,
        }

    def answer(self, method: str, path: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
        answers = self._answers()
        operation = answers.get((method, path))
        if operation is None:
            offered = ", ".join(" ".join(key) for key in answers)
            raise ApiError(
                "NotFound",
                f"{method} {path} does not exist; the local service has {offered}",
                http_status=404,
            )
        return operation(document)

    def _apply_quotas(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Applies the values that the document has by quota code."""
        unknown = sorted(document.keys() - self.quotas.quotas.keys())
        if unknown:
            raise validation_error(f"unknown quota codes: {', '.join(unknown)}")
        for code, value in document.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise validation_error(f"{code} can't be {value!r}: expected a number of instances")
            self.quotas.apply(code, value)
        return {}

    def _kill(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends SIGKILL to every process of a running local job, as a machine without memory
        does.
        """
        job = self.store.get(document.get("TrainingJobName", ""))
        if job is None:
            raise validation_error(
                f"{document!r} names no job: expected the TrainingJobName of a job"
            )
        return {"killed": self.kill(job)}


def _ledger_row(job: TrainingJob) -> dict[str, Any]:
    """The engine's own count of a job's billed time, with which a receipt is compared.

    ``billed_seconds`` is for one instance, to be multiplied by ``instance_count``.
    """
    has_started = job.training_start_ms is not None
    return {
        "job_name": job.name,
        "engine": job.engine,
        "created_at": job.created_ms / 1000,
        "status": job.status,
        "has_ended": job.status in TERMINAL,
        "instance_type": job.instance_type,
        "instance_count": job.instance_count,
        "is_spot": job.is_spot,
        "billed_seconds": billed_seconds(job) if has_started else 0,
    }
