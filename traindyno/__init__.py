"""Traindyno: the price-performance lab for model training."""

__version__ = "0.1.0"
