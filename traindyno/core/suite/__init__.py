"""The suite: its file, its cells and runs, and everything that can be wrong with it."""
