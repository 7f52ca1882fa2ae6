"""The race, which measures the leading cells again, and the search for the largest batch."""
