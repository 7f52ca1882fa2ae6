"""Measures what the project promises about its own speed and memory: ``python -m bench`` writes
docs/results/performance.json and its summary in docs/performance.md.
"""
