"""Requests, image addresses and objects, compared with the SageMaker SDK itself."""
