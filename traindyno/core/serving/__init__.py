"""A trained model as an endpoint: the deployment, the check of its answers, its latency and
cost.
"""
