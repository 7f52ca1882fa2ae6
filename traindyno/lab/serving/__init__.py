"""The use cases of deployments: from a trained model to an endpoint, and its end."""
