"""Builds the service from its parts: store, engines, event delivery and the HTTP server."""

import time
from types import TracebackType
from typing import Any, Self

import botocore.session

from localcloud.sagemaker_service.api.administration import Administration
from localcloud.sagemaker_service.api.http_server import Api, LoopbackServer
from localcloud.sagemaker_service.api.pricing_api import PricingApi
from localcloud.sagemaker_service.api.quotas_api import QuotasApi
from localcloud.sagemaker_service.api.training_jobs_api import TrainingJobsApi
from localcloud.sagemaker_service.api_error import validation_error
from localcloud.sagemaker_service.clock import Clock, SystemClock, VirtualClock
from localcloud.sagemaker_service.event_delivery import AwsClients, EventDelivery
from localcloud.sagemaker_service.host.job_run import JobContext
from localcloud.sagemaker_service.host.process_engine import ProcessEngine
from localcloud.sagemaker_service.hosting.hosting_service import HostingService
from localcloud.sagemaker_service.instance_table import LOCAL_GPU, LOCAL_TYPES, count_gpus, is_local
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import Engine, TrainingJob
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.job_view import state_change_event
from localcloud.sagemaker_service.jobs.quota_table import QuotaTable
from localcloud.sagemaker_service.replay.replay_engine import ReplayEngine
from localcloud.sagemaker_service.replay.simulated_log import SimulatedFiles
from localcloud.sagemaker_service.replay.trace import read_traces
from localcloud.sagemaker_service.service_health import Activity
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer

EXTRA_VALUES = {
    "TrainingInstanceType": LOCAL_TYPES,
    "ProductionVariantInstanceType": LOCAL_TYPES,
    "TransformInstanceType": LOCAL_TYPES,
}


class Service:
    def __init__(self, settings: ServiceSettings, clients: AwsClients) -> None:
        self._settings = settings
        self._gpu_count = count_gpus()
        self._activity = Activity()
        settings.state_folder.mkdir(parents=True, exist_ok=True)
        self._store = JobStore(settings.state_folder / "state.sqlite", self._events_of)
        self._faults = FaultInjector(self._store)
        self._quotas = QuotaTable(self._store, settings.granted_quota)
        self._machine_clock = SystemClock()
        start_ms = max(self._machine_clock.now_ms(), self._store.latest_change_ms())
        self._virtual_clock = VirtualClock(start_ms=start_ms, speed_up=settings.speed_up)
        self._delivery = EventDelivery(
            store=self._store,
            events=clients.events,
            functions=clients.functions,
            activity=self._activity,
        )
        self._process_engine = self._make_process_engine(clients)
        self._replay_engine = self._make_replay_engine(clients)
        self._hosting = HostingService(
            store=self._store,
            transfer=S3Transfer(clients.s3),
            settings=settings,
            clock=self._machine_clock,
        )
        self._server = LoopbackServer(
            settings.port,
            self._apis(),
            self._administration().answer,
            self._faults.refuse_request,
            invoke=self._hosting.invoke,
            activity=self._activity,
            now_seconds=lambda: self._main_clock.now_ms() / 1000,
            access_key_id=settings.access_key_id,
        )

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def __enter__(self) -> Self:
        self._process_engine.start()
        self._replay_engine.start()
        self._hosting.start()
        self._delivery.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process_engine.close()
        self._replay_engine.close()
        self._hosting.close()
        self._delivery.close()
        self._server.server_close()
        self._store.close()

    def serve(self) -> None:
        """Answers requests until ``stop`` is called from another thread."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        self._server.shutdown()

    @property
    def _main_clock(self) -> Clock:
        """The virtual clock if every job uses it, otherwise the machine's clock."""
        return self._virtual_clock if self._settings.simulates_all else self._machine_clock

    def _make_process_engine(self, clients: AwsClients) -> ProcessEngine:
        context = JobContext(
            store=self._store,
            transfer=S3Transfer(clients.s3),
            log_client=clients.logs,
            settings=self._settings,
            clock=self._machine_clock,
            gpu_count=self._gpu_count,
            faults=self._faults,
        )
        return ProcessEngine(context)

    def _make_replay_engine(self, clients: AwsClients) -> ReplayEngine:
        folder = self._settings.traces_folder
        return ReplayEngine(
            store=self._store,
            files=SimulatedFiles(S3Transfer(clients.s3)),
            clock=self._virtual_clock,
            faults=self._faults,
            traces=read_traces(folder) if folder else (),
            may_jump=self._may_jump,
        )

    def _administration(self) -> Administration:
        facts = {"gpu_count": self._gpu_count, "cores": list(self._settings.cores)}
        return Administration(
            store=self._store,
            faults=self._faults,
            quotas=self._quotas,
            clock=self._main_clock,
            facts=facts,
            kill=self._process_engine.kill,
        )

    def _apis(self) -> list[Api]:
        session = botocore.session.get_session()
        jobs = TrainingJobsApi(
            store=self._store,
            quotas=self._quotas,
            clocks={Engine.PROCESS: self._machine_clock, Engine.REPLAY: self._virtual_clock},
            engines={Engine.PROCESS: self._process_engine, Engine.REPLAY: self._replay_engine},
            engine_for=self._engine_for,
        )
        operations = {
            "sagemaker": {
                **jobs.operations(),
                **self._hosting.operations(jobs.operations()["ListTags"]),
            },
            "service-quotas": QuotasApi(self._quotas).operations(),
            "pricing": PricingApi(self._settings.prices).operations(),
        }
        return [
            Api(session.get_service_model(name), offered, EXTRA_VALUES)
            for name, offered in operations.items()
        ]

    def _engine_for(self, instance_type: str) -> Engine:
        if self._settings.simulates_all or not is_local(instance_type):
            return Engine.REPLAY
        if instance_type == LOCAL_GPU and self._gpu_count == 0:
            raise validation_error(
                f"{instance_type}: this machine has no GPU that nvidia-smi lists"
            )
        return Engine.PROCESS

    def _may_jump(self) -> bool:
        is_quiet = self._activity.quiet_seconds() >= self._settings.jump_when_quiet_seconds
        return is_quiet and self._store.pending_event_count(time.monotonic()) == 0

    def _events_of(self, job: TrainingJob) -> list[tuple[float, dict[str, Any]]]:
        """The events of a job's change. The current faults may lose, delay and repeat them."""
        event = state_change_event(job)
        delays = self._faults.event_delays(job.name, job.secondary_status)
        self._delivery.wake()
        return [(time.monotonic() + delay, event) for delay in delays]
