"""When a run can't win any more and which cells run again: the parent of a job decides it within
the job, on Python 3.8 with the standard library, and the rest as it does.
"""
