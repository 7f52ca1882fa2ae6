"""GPT-J 6B on SST-2 with SageMaker's model parallel library v1: torch 1.12, transformers 4.17 to
4.26.
"""
