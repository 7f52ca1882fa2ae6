"""The answer of a suite: rows per cell, verdict, claims, comparisons, and the data of its report."""
