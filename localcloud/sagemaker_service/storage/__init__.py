"""Copies between a job's folders and AWS: objects of S3 in both directions, and logs to CloudWatch
Logs.
"""
