"""A process of a job: what it is told, where it stands, and the group that it forms with the
others.
"""
