"""Checkpoints of a run, from which a later attempt resumes."""
