"""Why a cell is slow: what its steps consist of, and what helps."""
