"""Lines of text, in a stream: from the files of a channel, or by the script itself from S3."""

import os
from pathlib import Path
from typing import Any, Iterator, Tuple
from urllib.parse import urlparse


class FolderLines:
    """Read line by line, so that a channel of input mode FastFile is streamed from S3."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return self.folder

    def __iter__(self) -> Iterator[str]:
        for path in sorted(path for path in Path(self.folder).rglob("*") if path.is_file()):
            with path.open(encoding="utf-8") as file:
                yield from (line.strip() for line in file if line.strip())


class S3Lines:
    """The lines of all objects below an S3 prefix, without a copy on the disk.

    In place of the Amazon S3 plugin for PyTorch, which is no longer maintained. boto3 is part of
    AWS's images.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def __str__(self) -> str:
        return self.uri

    def __iter__(self) -> Iterator[str]:
        bucket, prefix = bucket_and_prefix(self.uri)
        client = s3_client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for stored in page.get("Contents", []):
                body = client.get_object(Bucket=bucket, Key=stored["Key"])["Body"]
                yield from (line.decode().strip() for line in body.iter_lines() if line.strip())


def bucket_and_prefix(uri: str) -> Tuple[str, str]:
    parts = urlparse(uri)
    if parts.scheme != "s3" or not parts.netloc:
        raise ValueError("stream_from {!r}: expected s3://bucket/prefix".format(uri))
    return parts.netloc, parts.path.lstrip("/")


def s3_client() -> Any:
    """Made in the process that reads: a client can't be sent to a loader worker."""
    import boto3  # noqa: PLC0415 -- a script that reads a channel works without it

    return boto3.client("s3", region_name=os.environ.get("AWS_REGION"))
