"""The environment in which the tests run the compiler xla: empty NVIDIA libraries stand in for a
CUDA build's.
"""
