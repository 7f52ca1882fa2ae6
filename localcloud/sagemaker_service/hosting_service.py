"""The part of the service that serves models: its operations, and the engines behind them."""

from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.api.hosting_api import HostingApi, tag_list
from localcloud.sagemaker_service.api.operations import Operation
from localcloud.sagemaker_service.api.transform_jobs_api import TransformJobsApi
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.events.log_shipping import LogClient
from localcloud.sagemaker_service.hosting.endpoint_engine import EndpointEngine
from localcloud.sagemaker_service.hosting.hosting import KINDS, HostingStore
from localcloud.sagemaker_service.hosting.hosting_engine import HostingSurroundings
from localcloud.sagemaker_service.hosting.transform_engine import TransformEngine
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.service_health import ServiceHealth
from localcloud.sagemaker_service.settings import Settings
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer


class Hosting:
    def __init__(
        self,
        *,
        store: JobStore,
        transfer: S3Transfer,
        logs: LogClient,
        settings: Settings,
        clock: Clock,
        health: ServiceHealth,
    ) -> None:
        self._arn_prefix = f"arn:aws:sagemaker:{settings.region}:{settings.account_id}:"
        self._store = HostingStore(store)
        surroundings = HostingSurroundings(
            store=self._store, transfer=transfer, logs=logs, settings=settings, clock=clock, health=health
        )
        self._endpoints = EndpointEngine(surroundings)
        self._transforms = TransformEngine(surroundings)
        self.api = HostingApi(store=self._store, engine=self._endpoints, clock=clock, arn_prefix=self._arn_prefix)
        self._transform_api = TransformJobsApi(
            store=self._store, engine=self._transforms, clock=clock, arn_prefix=self._arn_prefix
        )

    def start(self) -> None:
        self._endpoints.start()
        self._transforms.start()

    def close(self) -> None:
        self._endpoints.close()
        self._transforms.close()

    def operations(self, list_other_tags: Operation) -> dict[str, Operation]:
        """``list_other_tags`` answers for resources that are not of these kinds."""
        operations = {**self.api.operations(), **self._transform_api.operations()}
        return {**operations, "ListTags": lambda request: self._list_tags(request) or list_other_tags(request)}

    def _list_tags(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        for kind, name in KINDS.items():
            if request["ResourceArn"].startswith(f"{self._arn_prefix}{name}/"):
                found = [record for record in self._store.all(kind) if record.arn == request["ResourceArn"]]
                return tag_list(found[0]) if found else None
        return None
