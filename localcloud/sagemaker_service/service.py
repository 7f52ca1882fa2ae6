"""Puts the service together: store, engines, event delivery and the HTTP server."""

import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import botocore.session

from localcloud.sagemaker_service.api_error import ApiError, validation_error
from localcloud.sagemaker_service.aws_clients import AwsClients
from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.event_delivery import EventDelivery
from localcloud.sagemaker_service.http_server import Api, LoopbackServer
from localcloud.sagemaker_service.instance_table import LOCAL_GPU, LOCAL_TYPES, count_gpus, is_local
from localcloud.sagemaker_service.job import Engine, Job
from localcloud.sagemaker_service.job_store import JobStore, NewEvent
from localcloud.sagemaker_service.job_view import state_change_event
from localcloud.sagemaker_service.pricing_api import PricingApi
from localcloud.sagemaker_service.process_engine import ProcessEngine
from localcloud.sagemaker_service.quota_table import QuotaTable
from localcloud.sagemaker_service.quotas_api import QuotasApi
from localcloud.sagemaker_service.s3_transfer import S3Transfer
from localcloud.sagemaker_service.settings import EngineChoice, Settings
from localcloud.sagemaker_service.training_jobs_api import TrainingJobsApi

LOG = logging.getLogger(__name__)
EXTRA_VALUES = {"TrainingInstanceType": LOCAL_TYPES}
HEALTH_PATH = "/health"


class Service:
    def __init__(self, settings: Settings, clients: AwsClients) -> None:
        self._settings = settings
        self._gpu_count = count_gpus()
        self._clock = SystemClock()
        settings.state_folder.mkdir(parents=True, exist_ok=True)
        self._store = JobStore(settings.state_folder / "state.sqlite", self._events_of)
        self._quotas = QuotaTable(self._store, settings.applied_quotas)
        self._delivery = EventDelivery(store=self._store, events=clients.events, functions=clients.functions)
        self._process_engine = ProcessEngine(
            store=self._store,
            transfer=S3Transfer(clients.s3),
            log_client=clients.logs,
            settings=settings,
            clock=self._clock,
            gpu_count=self._gpu_count,
        )
        self._server = LoopbackServer(settings.port, self._apis(), self._administer, lambda _operation: None)

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def __enter__(self) -> Self:
        self._process_engine.start()
        self._delivery.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process_engine.close()
        self._delivery.close()
        self._server.server_close()
        self._store.close()

    def serve(self) -> None:
        """Answers requests until ``stop`` is called from another thread."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        self._server.shutdown()

    def _apis(self) -> list[Api]:
        settings = self._settings
        session = botocore.session.get_session()
        arn_prefix = f"arn:aws:sagemaker:{settings.region}:{settings.account_id}:training-job/"
        jobs = TrainingJobsApi(
            store=self._store,
            quotas=self._quotas,
            clock=self._clock,
            engines={Engine.PROCESS: self._process_engine},
            engine_for=self._engine_for,
            arn_prefix=arn_prefix,
        )
        quotas = QuotasApi(
            store=self._store,
            quotas=self._quotas,
            clock=self._clock,
            arn_prefix=f"arn:aws:servicequotas:{settings.region}:{settings.account_id}:",
            approval_seconds=settings.quota_approval_seconds,
        )
        prices = PricingApi(region=settings.region, local_usd_per_hour=settings.local_usd_per_hour)
        operations = {
            "sagemaker": jobs.operations(),
            "service-quotas": quotas.operations(),
            "pricing": prices.operations(),
        }
        return [Api(session.get_service_model(name), offered, EXTRA_VALUES) for name, offered in operations.items()]

    def _engine_for(self, instance_type: str) -> Engine:
        if self._settings.engine is EngineChoice.PROCESS and not is_local(instance_type):
            offered = ", ".join(sorted(LOCAL_TYPES))
            raise validation_error(
                f"{instance_type}: this local service runs {offered} on this machine and simulates nothing"
            )
        if instance_type == LOCAL_GPU and self._gpu_count == 0:
            raise validation_error(f"{instance_type}: this machine has no GPU that nvidia-smi lists")
        return Engine.PROCESS

    def _events_of(self, job: Job) -> list[NewEvent]:
        event = state_change_event(job, account_id=self._settings.account_id, region=self._settings.region)
        self._delivery.wake()
        return [NewEvent(due_seconds=time.time(), document=event)]

    def _administer(self, method: str, path: str, _document: Mapping[str, Any]) -> Mapping[str, Any]:
        if (method, path) == ("GET", HEALTH_PATH):
            return {
                "status": "ok",
                "engine": self._settings.engine,
                "jobs": self._store.count_by_status(),
                "undelivered_events": self._store.pending_event_count(),
                "gpu_count": self._gpu_count,
                "cores": list(self._settings.cores),
            }
        raise ApiError("NotFound", f"{method} {path}: the local service has GET {HEALTH_PATH}", http_status=404)
