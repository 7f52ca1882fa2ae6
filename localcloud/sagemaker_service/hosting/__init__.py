"""Hosting of models: SageMaker's operations on endpoints, with the containers behind them."""
