"""A dataset's files as objects in S3, read through Amazon's connector for PyTorch."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

from training.data.files import DataFile
from training.errors import WorkloadError

REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
READ_BYTES = 2**23
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Object:
    name: str
    uri: str
    number: int  # its place in the listing

    def open(self) -> BinaryIO:
        # The listing is made again in each process: its client must not be shared with a forked worker.
        opened: BinaryIO = _listing(self.uri, os.getpid())[self.number]
        return opened

    def source(self) -> str | BinaryIO:
        return self.open()


def s3_files(uri: str) -> list[DataFile]:
    listing = _listing(uri, os.getpid())
    prefix = uri.split("/", 3)[3] if uri.count("/") > 2 else ""
    keys = [listing[number].key for number in range(len(listing))]
    return sorted(
        (
            S3Object(name=key.removeprefix(prefix).lstrip("/"), uri=uri, number=number)
            for number, key in enumerate(keys)
            if not key.endswith("/")
        ),
        key=lambda found: found.name,
    )


@cache
def _listing(uri: str, _process: int) -> Any:
    try:
        # Only streaming needs it.
        from s3torchconnector import S3ClientConfig, S3MapDataset, S3ReaderConstructor  # noqa: PLC0415
    except ImportError as error:
        raise WorkloadError(
            "input_mode stream needs the package s3torchconnector, which this image lacks; expected File or FastFile"
        ) from error
    endpoint = _first(os.environ, ENDPOINT_VARIABLES)
    config = S3ClientConfig(force_path_style=endpoint is not None)
    region = _first(os.environ, REGION_VARIABLES) or "us-east-1"
    # These readers hold a part of the object; the default ones keep all that was read.
    reader = S3ReaderConstructor.range_based(buffer_size=READ_BYTES)
    return S3MapDataset.from_prefix(
        uri, region=region, endpoint=endpoint, s3client_config=config, reader_constructor=reader
    )


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)
