"""Before the first run: memory, time and cost of cells, and a first suite of them."""
