"""Seeded simulations that hold the method to its limits: ``python -m tests.simulations`` prints
their tables.
"""
