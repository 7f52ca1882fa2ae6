"""Runs jobs as processes of this machine, in folders and an environment as in a container."""
