"""The requests that the service answers: their validation, their rates, and a module for each group
of operations.
"""
