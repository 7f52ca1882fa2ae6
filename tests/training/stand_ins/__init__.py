"""Libraries that can't be installed here, for scripts that tests run: on their path, not imported
by the tests.
"""
