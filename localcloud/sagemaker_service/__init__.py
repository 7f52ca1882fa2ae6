"""The local SageMaker service: training jobs as processes of this machine, quotas and prices, for boto3 on loopback."""

from localcloud.sagemaker_service.running_service import RunningService, ServiceNotReady, start_service

__all__ = ["RunningService", "ServiceNotReady", "start_service"]
