"""Model-based search: a Gaussian process over the axes of a matrix selects the next cells to measure."""
