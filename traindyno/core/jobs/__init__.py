"""One training job: its attempts, their outcome, and how a job ended."""
