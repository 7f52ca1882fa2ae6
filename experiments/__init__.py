"""The four published experiments on the software of their time: one folder of source for each
original suite.
"""
