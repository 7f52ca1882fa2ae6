"""A trained model as an endpoint or a transform job: the deployment, the check of its answers, its latency and cost."""
