"""Checkpoints of a run: what they hold, when they are written, and which one an attempt resumes
from.
"""
