"""Models of transformers with what trains them on one device."""
