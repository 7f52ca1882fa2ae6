"""ALBERT's masked language modelling under DDP or SageMaker's data parallel library: torch 1.12,
transformers 4.21.
"""
