"""Models of transformers and what trains them on one device: weights, objective, precision,
optimizer, FLOPs.
"""
