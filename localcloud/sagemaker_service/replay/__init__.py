"""Jobs that are played: their steps follow a trace, and no process starts."""
