"""Data files of AWS's images."""
