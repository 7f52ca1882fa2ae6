"""The objects of one S3 bucket, by key."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import s3_uri

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef

MISSING = frozenset({"NoSuchKey", "404"})
AFTER_THE_END = "InvalidRange"


class OriginalMissing(TraindynoError):
    """The object that is to be copied isn't there."""


class Objects:
    def __init__(self, s3: "S3Client", name: str) -> None:
        self._s3 = s3
        self.name = name

    def find(self, key: str, *, last_bytes: int | None = None) -> bytes | None:
        """The object's content, or its last bytes; None if there is no such object."""
        return self._find(key, {"Range": f"bytes=-{last_bytes}"} if last_bytes else {})

    def find_part(self, key: str, first_byte: int, count: int) -> bytes | None:
        """At most ``count`` bytes of the object; empty after its end, None if there is no such
        object.
        """
        return self._find(key, {"Range": f"bytes={first_byte}-{first_byte + count - 1}"})

    def _find(self, key: str, part: Any) -> bytes | None:
        try:
            return self._s3.get_object(Bucket=self.name, Key=key, **part)["Body"].read()
        except ClientError as error:
            if error_code(error) == AFTER_THE_END:
                return b""
            if error_code(error) not in MISSING:
                raise
            return None

    def write(self, key: str, content: bytes, content_type: str) -> None:
        self._s3.put_object(Bucket=self.name, Key=key, Body=content, ContentType=content_type)

    def copy(self, source_s3_uri: str, key: str) -> str:
        """Copy an object of up to 5 GB, from any bucket that the caller may read.

        Returns the URI of the copy.

        Raises OriginalMissing.
        """
        source = urlsplit(source_s3_uri)
        try:
            self._s3.copy_object(
                Bucket=self.name,
                Key=key,
                CopySource={"Bucket": source.netloc, "Key": source.path.lstrip("/")},
            )
        except ClientError as error:
            if error_code(error) not in MISSING:
                raise
            raise OriginalMissing(f"nothing is at {source_s3_uri}") from error
        return s3_uri(self.name, key)

    def copy_large(self, key: str, target_key: str) -> bool:
        """Copy an object of any size within the bucket, in parts; False if there is no such
        object.
        """
        try:
            self._s3.copy({"Bucket": self.name, "Key": key}, self.name, target_key)
        except ClientError as error:
            if error_code(error) not in MISSING:
                raise
            return False
        return True

    def delete(self, key: str) -> None:
        """Safe to repeat."""
        self._s3.delete_object(Bucket=self.name, Key=key)

    def list_keys(self, prefix: str) -> Iterator[str]:
        """The keys in the order of their UTF-8 bytes."""
        return (key for key, _ in self.list_sizes(prefix))

    def has_changed(self, prefix: str, *, since: float, besides: str) -> bool:
        """Whether an object with this prefix, but not with the prefix of ``besides``, was written
        after ``since``.
        """
        return any(
            (time := stored.get("LastModified")) is None or time.timestamp() > since
            for stored in self._list(prefix)
            if not stored["Key"].startswith(besides)
        )

    def renew(self, prefix: str, *, before: float) -> None:
        """Copy objects that were written before onto themselves: they expire as new ones do."""
        for stored in self._list(prefix):
            if (time := stored.get("LastModified")) is None or time.timestamp() < before:
                key = stored["Key"]
                # S3 refuses such a copy if it changes nothing
                change = {"MetadataDirective": "REPLACE"}
                self._s3.copy({"Bucket": self.name, "Key": key}, self.name, key, change)

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """The keys in the order of their UTF-8 bytes, with the bytes of each object."""
        return ((stored["Key"], stored["Size"]) for stored in self._list(prefix))

    def _list(self, prefix: str) -> "Iterator[ObjectTypeDef]":
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return (stored for page in pages for stored in page.get("Contents", []))
