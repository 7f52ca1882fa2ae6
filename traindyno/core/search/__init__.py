"""Model-based search: a Gaussian process over the axes of a matrix, from which the next cells to measure follow."""
