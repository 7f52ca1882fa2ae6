"""The Python interface: suites, plans, executions and their results.

The command line calls it; docs/python.md.
"""
