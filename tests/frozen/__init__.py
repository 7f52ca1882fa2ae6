"""Runs the frozen scripts for real, on the CPU, with the libraries of their time: ``make
frozen``.
"""
