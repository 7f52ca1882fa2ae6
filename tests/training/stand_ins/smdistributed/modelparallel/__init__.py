"""The model parallel library v1."""
