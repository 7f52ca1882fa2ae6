"""Estimates, comparisons and selection from numbers alone: it knows no runs and imports nothing of
the lab.
"""
