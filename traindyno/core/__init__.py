"""The domain, without I/O: standard library and cattrs only, so that Lambdas and training images
can carry it.
"""
