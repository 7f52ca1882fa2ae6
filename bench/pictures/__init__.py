"""The pictures of docs/method.md, drawn from seeded examples by the functions that judge real
runs.
"""
