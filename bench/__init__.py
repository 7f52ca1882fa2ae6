"""Measures what the project promises about its own speed and memory: ``python -m bench`` writes
docs/performance.md.
"""
