"""Whole suites of known truth, with noises on which no constant of the lab was chosen."""
