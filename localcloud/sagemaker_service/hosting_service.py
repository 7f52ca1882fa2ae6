"""Builds the part of the service that hosts models: its operations and the engines behind them."""

from localcloud.sagemaker_service.api.hosting_api import HostingApi
from localcloud.sagemaker_service.api.hosting_records import HostingRecords
from localcloud.sagemaker_service.api.operations import Operation
from localcloud.sagemaker_service.api.transform_jobs_api import TransformJobsApi
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.hosting.endpoint_engine import EndpointEngine
from localcloud.sagemaker_service.hosting.hosting import HostingStore
from localcloud.sagemaker_service.hosting.hosting_engine import HostingContext
from localcloud.sagemaker_service.hosting.transform_engine import TransformEngine
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.service_health import ServiceHealth
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.log_shipping import LogClient
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer


class HostingService:
    def __init__(
        self,
        *,
        store: JobStore,
        transfer: S3Transfer,
        logs: LogClient,
        settings: ServiceSettings,
        clock: Clock,
        health: ServiceHealth,
    ) -> None:
        hosting_store = HostingStore(store)
        context = HostingContext(
            store=hosting_store, transfer=transfer, logs=logs, settings=settings, clock=clock, health=health
        )
        self._endpoints = EndpointEngine(context)
        self._transforms = TransformEngine(context)
        arn_prefix = f"arn:aws:sagemaker:{settings.region}:{settings.account_id}:"
        self._records = HostingRecords(hosting_store, clock=clock, arn_prefix=arn_prefix)
        self.api = HostingApi(self._records, self._endpoints)
        self._transform_api = TransformJobsApi(self._records, self._transforms)

    def start(self) -> None:
        self._endpoints.start()
        self._transforms.start()

    def close(self) -> None:
        self._endpoints.close()
        self._transforms.close()

    def operations(self, list_other_tags: Operation) -> dict[str, Operation]:
        """``list_other_tags`` answers ListTags for all other kinds of resources."""
        operations = {**self.api.operations(), **self._transform_api.operations()}
        return {
            **operations,
            "ListTags": lambda request: self._records.list_tags(request["ResourceArn"]) or list_other_tags(request),
        }
