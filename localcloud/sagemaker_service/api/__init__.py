"""The requests that the service accepts: their validation, their rates, and one module for each group of operations."""
