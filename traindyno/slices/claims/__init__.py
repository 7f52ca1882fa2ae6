"""Published figures, and whether what a suite measured reproduces them."""
