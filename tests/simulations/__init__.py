"""Seeded simulations that hold the figures of docs/method.md: ``python -m tests.simulations`` writes them there."""
