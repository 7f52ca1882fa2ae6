"""One training job: its request, how it is launched, how it ended."""
