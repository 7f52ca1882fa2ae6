"""The objects of one S3 bucket, by key."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MISSING = frozenset({"NoSuchKey", "404"})


class Objects:
    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self.bucket = bucket

    def find(self, key: str, *, last_bytes: int | None = None) -> bytes | None:
        """The object's content, or its last bytes; None if there is no such object."""
        part: Any = {"Range": f"bytes=-{last_bytes}"} if last_bytes else {}
        try:
            return self._s3.get_object(Bucket=self.bucket, Key=key, **part)["Body"].read()
        except ClientError as error:
            if error_code(error) not in MISSING:
                raise
            return None

    def write(self, key: str, content: bytes, content_type: str) -> None:
        self._s3.put_object(Bucket=self.bucket, Key=key, Body=content, ContentType=content_type)

    def copy(self, source_s3_uri: str, key: str) -> None:
        """Copy an object of up to 5 GB, from any bucket that the caller may read."""
        source = urlsplit(source_s3_uri)
        self._s3.copy_object(
            Bucket=self.bucket, Key=key, CopySource={"Bucket": source.netloc, "Key": source.path.lstrip("/")}
        )

    def copy_large(self, key: str, target_key: str) -> bool:
        """Copy an object of any size within the bucket, in parts; False if there is no such object."""
        try:
            self._s3.copy({"Bucket": self.bucket, "Key": key}, self.bucket, target_key)
        except ClientError as error:
            if error_code(error) not in MISSING:
                raise
            return False
        return True

    def delete(self, key: str) -> None:
        """Safe to repeat."""
        self._s3.delete_object(Bucket=self.bucket, Key=key)

    def list_keys(self, prefix: str) -> Iterator[str]:
        """The keys in the order of their UTF-8 bytes."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return (item["Key"] for page in pages for item in page.get("Contents", []))
