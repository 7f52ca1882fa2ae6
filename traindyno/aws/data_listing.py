"""The objects under an S3 prefix, with a digest of their keys and ETags that changes with their
content.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import SuiteRefused

UNREADABLE = {"AccessDenied", "NoSuchBucket", "AllAccessDisabled", "403", "404"}


class _Unreadable(Exception):
    """The lab may not list the bucket, or there is none; the text is AWS's error code."""


class ListingClient(Protocol):
    """The call of boto3's S3 client that is used here."""

    def get_paginator(self, operation_name: Literal["list_objects_v2"], /) -> Any: ...


class DataListing:
    """Each prefix is listed once in full, however often its size and content are asked for."""

    def __init__(self, s3: ListingClient) -> None:
        self._s3 = s3
        self._listed: dict[str, list[tuple[str, int, str]]] = {}

    def size_bytes(self, uri: str) -> int | None:
        """Size of all objects below the prefix; None if it can't be listed."""
        with suppress(_Unreadable):
            return sum(size for _, size, _ in self._objects(uri))
        return None

    def siblings(self, field: str, uri: str) -> str | None:
        """Why the prefix takes objects of another folder too, as ``train`` does of ``train_old``;
        None if it does not, or if it can't be listed.
        """
        prefix = urlsplit(uri).path.lstrip("/")
        if not prefix or prefix.endswith("/"):
            return None
        names: list[str] = []
        with suppress(_Unreadable):
            for page in self._pages(
                uri, Delimiter="/"
            ):  # one name for each folder: it may hold millions of objects
                names += [folder["Prefix"] for folder in page.get("CommonPrefixes", [])]
                names += [file["Key"] for file in page.get("Contents", [])]
        others = [name for name in names if name not in (prefix, f"{prefix}/")]
        if not others:
            return None
        named = " and ".join(f"s3://{urlsplit(uri).netloc}/{name}" for name in others[:2])
        return (
            f"{field}: {uri} also takes {named}, because SageMaker reads each object whose key "
            f"begins with it; expected a folder with a final /, as in {uri}/, or a file in a "
            "folder of its own"
        )

    def content(self, field: str, uri: str) -> tuple[str, frozenset[str]]:
        """A digest of the objects' names, sizes and ETags, and the names; raises SuiteRefused if
        there are none. ``field``: the suite's field with the prefix.
        """
        try:
            objects = self._objects(uri)
        except _Unreadable as error:
            message = (
                f"{field}: the lab can't list {uri} ({error}); expected "
                "a bucket that exists and that"
                ' labs/LAB.toml names, as in data_buckets = ["my-bucket"]'
            )
            raise SuiteRefused([message]) from error
        if not objects:
            raise SuiteRefused([f"{field}: {uri} has no objects; expected a prefix with files"])
        digest = hashlib.sha256(
            "".join(f"{name}\0{size}\0{tag}\n" for name, size, tag in objects).encode()
        )
        return digest.hexdigest(), frozenset(name for name, _, _ in objects)

    def _objects(self, uri: str) -> list[tuple[str, int, str]]:
        """Name below the prefix, size and ETag of each object. Raises _Unreadable."""
        if uri not in self._listed:
            prefix = urlsplit(uri).path.lstrip("/")
            self._listed[uri] = [
                (
                    stored["Key"].removeprefix(prefix).lstrip("/"),
                    int(stored["Size"]),
                    stored["ETag"],
                )
                for page in self._pages(uri)
                for stored in page.get("Contents", [])
            ]
        return self._listed[uri]

    def _pages(self, uri: str, **options: str) -> Iterator[Any]:
        parts = urlsplit(uri)
        pages = self._s3.get_paginator("list_objects_v2")
        try:
            yield from pages.paginate(Bucket=parts.netloc, Prefix=parts.path.lstrip("/"), **options)
        except ClientError as error:
            if error_code(error) not in UNREADABLE:
                raise
            raise _Unreadable(error_code(error)) from error
