"""The local SageMaker service: training jobs as processes of this machine, quotas and prices, for boto3 on loopback."""
