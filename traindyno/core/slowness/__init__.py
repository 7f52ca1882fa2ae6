"""Why a cell is slow: what its steps consist of, what helps, and why another cell is faster."""
