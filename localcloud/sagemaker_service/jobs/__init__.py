"""A job of the service: its state, how it is stored, listed and shown, its faults, and the quotas that bound it."""
