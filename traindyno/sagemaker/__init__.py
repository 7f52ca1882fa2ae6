"""SageMaker's words: requests, launchers, images, job descriptions and failure reasons. No boto3."""
