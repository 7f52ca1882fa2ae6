"""Data files of the instance types."""
