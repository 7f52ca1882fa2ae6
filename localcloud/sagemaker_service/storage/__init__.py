"""Folders of this machine and prefixes of S3: safe copies in both directions."""
