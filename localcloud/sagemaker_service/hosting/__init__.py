"""Hosts models: SageMaker's operations on endpoints, and the containers behind them."""
