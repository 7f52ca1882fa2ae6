"""SageMaker's requests and descriptions of models, endpoints and transform jobs."""
