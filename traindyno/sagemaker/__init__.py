"""SageMaker's field names: requests, launchers, images, job descriptions and failure reasons.

No boto3.
"""
