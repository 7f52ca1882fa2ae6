"""Model-based search."""
