"""Prices, what was paid, and what the whole workload would cost."""
