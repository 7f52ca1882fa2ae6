"""The container's only output contract: its lines, and reading them."""
