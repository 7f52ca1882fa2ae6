"""Weights of the estimates, and the data sheets of devices."""
