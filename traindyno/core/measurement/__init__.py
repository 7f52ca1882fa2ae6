"""From a step log to what a run measured, and from trials to intervals."""
