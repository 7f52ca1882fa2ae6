"""Runs jobs as processes of this machine: container folders and environment, the training toolkit,
and the engine.
"""
