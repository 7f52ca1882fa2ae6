"""GPT-2 on SST-2, native or compiled by SageMaker Training Compiler: torch 1.11, transformers
4.21.
"""
