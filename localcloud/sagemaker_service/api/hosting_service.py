"""Joins the operations of hosting with the engines behind them."""

from localcloud.sagemaker_service.api.hosting_api import HostingApi
from localcloud.sagemaker_service.api.hosting_records import HostingRecords
from localcloud.sagemaker_service.api.operations import Operation
from localcloud.sagemaker_service.api.transform_jobs_api import TransformJobsApi
from localcloud.sagemaker_service.hosting.endpoint_engine import EndpointEngine
from localcloud.sagemaker_service.hosting.hosting_engine import HostingContext
from localcloud.sagemaker_service.hosting.transform_engine import TransformEngine


class HostingService:
    def __init__(self, context: HostingContext) -> None:
        self._endpoints = EndpointEngine(context)
        self._transforms = TransformEngine(context)
        arn_prefix = f"arn:aws:sagemaker:{context.settings.region}:{context.settings.account_id}:"
        self._records = HostingRecords(context.store, clock=context.clock, arn_prefix=arn_prefix)
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
