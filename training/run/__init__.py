"""A training run from its first step to what it saves: the loop, its evaluation, and how it
ends.
"""
