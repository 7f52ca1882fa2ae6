"""The suite: its file, its cells and runs, and the checks of it."""
