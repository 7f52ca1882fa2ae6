"""Simulates jobs: their steps follow a trace in virtual time, and no process starts."""
