"""How throughput and cost grow with the number of instances."""
