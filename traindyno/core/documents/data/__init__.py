"""Data files of the quotas."""
