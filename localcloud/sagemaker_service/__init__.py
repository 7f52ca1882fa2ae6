"""The local SageMaker service for boto3 on loopback: training jobs, hosted models, quotas and
prices.
"""
