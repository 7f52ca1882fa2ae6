"""Suites from jobs that a person already has: a training job that ran, or the ModelTrainer of the
SageMaker SDK 3.
"""
