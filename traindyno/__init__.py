"""Traindyno: the price-performance lab for model training."""

__version__ = "0.3.0"
