"""The requests that the service answers, with a module for each group of operations."""
