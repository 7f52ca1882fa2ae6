"""The search for the largest batch of a cell."""
