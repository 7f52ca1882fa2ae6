"""Answers the paths that are not AWS's: health, faults, ledger, clock, quotas, and killing a job's processes."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import cattrs

from localcloud.sagemaker_service.api_error import ApiError, validation_error
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import TERMINAL, TrainingJob, billed_seconds
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.quota_table import QuotaTable
from localcloud.sagemaker_service.service_health import ServiceHealth

REQUESTS_PER_SECOND = {
    "CreateTrainingJob": 1.0,
    "DescribeTrainingJob": 5.0,
    "StopTrainingJob": 1.0,
    "ListTrainingJobs": 2.0,
    "UpdateTrainingJob": 1.0,
}


class RateLimits:
    """A token bucket for each operation. It holds the requests of one second, and the clock refills it."""

    def __init__(self, clock: Clock, rates: Mapping[str, float]) -> None:
        self._clock = clock
        self._rates = rates
        self._lock = threading.Lock()
        self._left = dict(rates)
        self._counted_at_ms = dict.fromkeys(rates, clock.now_ms())
        self._refused = Counter[str]()
        self._by_second: dict[str, Counter[int]] = {operation: Counter() for operation in rates}

    def counts(self) -> dict[str, Any]:
        """Counts of each operation: all requests, refused requests, and the most requests within a second."""
        with self._lock:
            return {
                operation: {
                    "requests": seconds.total(),
                    "refused": self._refused[operation],
                    "most_in_a_second": max(seconds.values(), default=0),
                }
                for operation, seconds in self._by_second.items()
            }

    def take(self, operation: str) -> None:
        rate = self._rates.get(operation)
        if rate is None:
            return
        with self._lock:
            now_ms = self._clock.now_ms()
            self._by_second[operation][now_ms // 1000] += 1
            gained = max(now_ms - self._counted_at_ms[operation], 0) / 1000 * rate
            self._left[operation] = min(self._left[operation] + gained, rate)
            self._counted_at_ms[operation] = now_ms
            if self._left[operation] < 1:
                self._refused[operation] += 1
                raise ApiError("ThrottlingException", "Rate exceeded")
            self._left[operation] -= 1


Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class ServiceFailing(ApiError):
    """A part of the service does not work; the message has each part with its problem."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        text = "; ".join(f"{part}: {problem}" for part, problem in problems.items())
        super().__init__("ServiceUnavailable", text, http_status=503)


class Administration:
    """``facts`` are further entries of the health answer. ``kill`` ends a job's processes and returns their number."""

    def __init__(
        self,
        *,
        store: JobStore,
        faults: FaultInjector,
        quotas: QuotaTable,
        clock: Clock,
        rates: RateLimits,
        facts: Mapping[str, Any],
        health: ServiceHealth,
        kill: Callable[[TrainingJob], int],
    ) -> None:
        self._kill_processes = kill
        self._store = store
        self._faults = faults
        self._quotas = quotas
        self._clock = clock
        self._facts = facts
        self._service_health = health
        self._answers: dict[tuple[str, str], Answer] = {
            ("GET", "/health"): self._health,
            ("GET", "/_local/clock"): lambda _: {"now_ms": clock.now_ms()},
            ("GET", "/_local/requests"): lambda _: rates.counts(),
            ("GET", "/_local/ledger"): lambda _: {
                "rows": [_ledger_row(job) for job in store.select("1 = 1", (), "created_ms, name", -1)]
            },
            ("GET", "/_local/faults"): lambda _: self._view_faults(),
            ("POST", "/_local/faults"): self._replace_faults,
            ("POST", "/_local/quotas"): self._apply_quotas,
            ("POST", "/_local/kill"): self._kill,
        }

    def answer(self, method: str, path: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
        found = self._answers.get((method, path))
        if found is None:
            known = ", ".join(" ".join(key) for key in self._answers)
            raise ApiError(
                "NotFound", f"{method} {path} does not exist; the local service has {known}", http_status=404
            )
        return found(document)

    def _health(self, _document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises ServiceFailing, an answer with status 503, while a part of the service does not work."""
        if problems := self._service_health.problems:
            raise ServiceFailing(problems)
        return {
            "status": "ok",
            **self._facts,
            "jobs": self._store.count_by_status(),
            "undelivered_events": self._store.pending_event_count(),
        }

    def _view_faults(self) -> Mapping[str, Any]:
        view: Mapping[str, Any] = cattrs.unstructure(self._faults.current)
        return view

    def _replace_faults(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        self._faults.replace(document)
        return self._view_faults()

    def _apply_quotas(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """``document`` has the values to apply, by quota code."""
        unknown = sorted(document.keys() - self._quotas.quotas.keys())
        if unknown:
            raise validation_error(f"unknown quota codes: {', '.join(unknown)}")
        for code, value in document.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise validation_error(f"{code} can't be {value!r}: expected a number of instances")
            self._quotas.apply(code, value)
        return {}

    def _kill(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends SIGKILL to every process of a running local job, as a machine without memory does."""
        job = self._store.get(document.get("TrainingJobName", ""))
        if job is None:
            raise validation_error(f"{document!r} names no job: expected the TrainingJobName of a job")
        return {"killed": self._kill_processes(job)}


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
        "warm_pool_seconds": job.warm_pool["ResourceRetainedBillableTimeInSeconds"] if job.warm_pool else 0,
        "reused_by": job.warm_pool.get("ReusedByJob") if job.warm_pool else None,
        "started_warm": job.started_warm,
    }
