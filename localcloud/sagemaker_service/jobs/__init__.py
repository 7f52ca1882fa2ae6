"""Training jobs: their state, how they are stored, listed and shown, their faults, and the quotas
that limit them.
"""
