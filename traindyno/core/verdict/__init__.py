"""A suite's answer: rows per cell, verdict, claims, comparisons, and the data of its report."""
