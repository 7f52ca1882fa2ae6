"""The objects under an S3 prefix, with a digest of their keys and ETags that changes with their content."""

import hashlib
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import SuiteRefused

UNREADABLE = {"AccessDenied", "NoSuchBucket", "AllAccessDisabled", "403", "404"}


class ListingClient(Protocol):
    """The call of boto3's S3 client that is used here."""

    def get_paginator(self, operation_name: Literal["list_objects_v2"], /) -> Any: ...


class DataListing:
    def __init__(self, s3: ListingClient) -> None:
        self._s3 = s3

    def size_bytes(self, uri: str) -> int | None:
        """Size of all objects below the prefix; None if it can't be listed."""
        parts = urlsplit(uri)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=parts.netloc, Prefix=parts.path.lstrip("/"))
        try:
            return sum(int(item["Size"]) for page in pages for item in page.get("Contents", []))
        except ClientError as error:
            if error_code(error) not in UNREADABLE:
                raise
            return None

    def siblings(self, field: str, uri: str) -> str | None:
        """Why the prefix takes objects of another folder too, as ``train`` does of ``train_old``; None if it does not,
        or if it can't be listed.
        """
        parts = urlsplit(uri)
        prefix = parts.path.lstrip("/")
        if not prefix or prefix.endswith("/"):
            return None
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=parts.netloc, Prefix=prefix, Delimiter="/")
        try:
            found = [
                name
                for page in pages
                for name in (
                    *(each["Prefix"] for each in page.get("CommonPrefixes", [])),
                    *(each["Key"] for each in page.get("Contents", [])),
                )
                if name not in (prefix, f"{prefix}/")
            ]
        except ClientError as error:
            if error_code(error) not in UNREADABLE:
                raise
            return None
        if not found:
            return None
        named = " and ".join(f"s3://{parts.netloc}/{name}" for name in found[:2])
        return (
            f"{field}: {uri} also takes {named}, because SageMaker reads each object whose key begins with it;"
            f" expected a folder with a final /, as in {uri}/, or a file in a folder of its own"
        )

    def content(self, field: str, uri: str) -> tuple[str, frozenset[str]]:
        """A digest of the objects' names, sizes and ETags, and the names; raises SuiteRefused if there are none.
        ``field``: the suite's field with the prefix.
        """
        parts = urlsplit(uri)
        prefix = parts.path.lstrip("/")
        digest, names = hashlib.sha256(), []
        try:
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=parts.netloc, Prefix=prefix):
                for item in page.get("Contents", []):
                    name = item["Key"].removeprefix(prefix).lstrip("/")
                    digest.update(f"{name}\0{item['Size']}\0{item['ETag']}\n".encode())
                    names.append(name)
        except ClientError as error:
            if error_code(error) not in UNREADABLE:
                raise
            raise SuiteRefused(
                [
                    f"{field}: the lab can't list {uri} ({error_code(error)}); expected a bucket that exists and that"
                    " the lab was deployed with, as in --context data_buckets=my-bucket"
                ]
            ) from error
        if not names:
            raise SuiteRefused([f"{field}: {uri} has no objects; expected a prefix with files"])
        return digest.hexdigest(), frozenset(names)
