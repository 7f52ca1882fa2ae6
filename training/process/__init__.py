"""A process of a job, in the group that it forms with the others."""
