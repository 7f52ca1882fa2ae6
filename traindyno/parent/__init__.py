"""The program of a shared job: on each instance it runs one run after another.

Standard library, Python 3.8.
"""
