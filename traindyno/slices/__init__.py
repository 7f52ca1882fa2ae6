"""Features apart: a folder each."""
