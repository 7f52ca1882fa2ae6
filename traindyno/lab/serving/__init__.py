"""The use cases of deployments: from a trained model to an endpoint or transform job, and its removal."""
