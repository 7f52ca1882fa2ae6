"""Transfers files between a job and S3."""

import contextlib
import gzip
import logging
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from localcloud.sagemaker_service.storage.safe_paths import UnsafePath, stays_inside, unpack_archive

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

ABSENT = frozenset({"NoSuchKey", "NoSuchBucket", "404", "AccessDenied", "403"})
LOG = logging.getLogger(__name__)
Stamp = tuple[int, int]


class DataUnavailable(Exception):
    """S3 does not have the job's data. The text has the words of SageMaker's failure reason."""


class UploadEnded(Exception):
    """The time for the job's uploads is over."""


class S3Transfer:
    def __init__(self, client: "S3Client") -> None:
        self._client = client

    def list_objects(self, uri: str) -> list[tuple[str, str]]:
        """The key and ETag of each object under the prefix."""
        bucket, prefix = split_uri(uri)
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        try:
            return [(row["Key"], row["ETag"]) for page in pages for row in page.get("Contents", ())]
        except ClientError as error:
            raise _unavailable(uri, error) from error

    def download_prefix(self, uri: str, folder: Path, *, must_exist: bool = True) -> list[Path]:
        """Downloads every object under the prefix to a file below ``folder``, named by the rest of
        its key.
        """
        bucket, prefix = split_uri(uri)
        objects = self.list_objects(uri)
        if must_exist and not objects:
            raise DataUnavailable(
                f"ClientError: Data download failed:No S3 objects found under S3 URL {uri!r} given "
                "in input data source. Please ensure that the bucket exists, that the prefix is "
                "right and that the role may read it."
            )
        keys = [key for key, _ in objects if not key.endswith("/")]
        return [self.download(bucket, key, folder / relative_name(key, prefix)) for key in keys]

    def download(self, bucket: str, key: str, path: Path) -> Path:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(bucket, key, str(path))
        except ClientError as error:
            raise _unavailable(f"s3://{bucket}/{key}", error) from error
        return path

    def read(self, uri: str) -> bytes:
        bucket, key = split_uri(uri)
        try:
            return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            raise _unavailable(uri, error) from error

    def write(self, uri: str, contents: bytes) -> None:
        bucket, key = split_uri(uri)
        self._client.put_object(Bucket=bucket, Key=key, Body=contents)

    def upload(self, path: Path, uri: str, *, is_over: Callable[[], bool] = lambda: False) -> None:
        """Raises UploadEnded, or botocore's error about it, once ``is_over``."""
        bucket, key = split_uri(uri)

        def look(_sent_bytes: int) -> None:
            if is_over():
                raise UploadEnded(uri)

        self._client.upload_file(str(path), bucket, key, Callback=look)


def split_uri(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    if parts.scheme != "s3" or not parts.netloc:
        raise DataUnavailable(
            f"ClientError: Data download failed:{uri!r} is no S3 URI of the form s3://bucket/key"
        )
    return parts.netloc, parts.path.lstrip("/")


def relative_name(key: str, prefix: str) -> str:
    """The key's path within a channel: the part after the prefix's last folder."""
    rest = (
        key.removeprefix(prefix).lstrip("/")
        if key.startswith(prefix + "/") or prefix.endswith("/")
        else ""
    )
    name = rest or key.removeprefix(prefix[: prefix.rfind("/") + 1])
    if not stays_inside(name) or "." in name.split("/"):
        raise DataUnavailable(
            f"ClientError: Data download failed: the S3 key {key!r} would be written outside of "
            "its channel's folder; a key must not have '.' or '..' as a part of its path, nor "
            "begin with '/'"
        )
    return name


def unpack_data(archive: Path, folder: Path) -> None:
    """Unpacks source code or a model.

    Raises DataUnavailable for an archive that is damaged or unsafe.
    """
    try:
        unpack_archive(archive, folder)
    except (UnsafePath, tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataUnavailable(
            f"ClientError: the archive {archive.name} can't be unpacked: {error}"
        ) from error


def pack_folders(folders: Iterable[Path], archive: Path) -> bool:
    """Packs the content of all folders into one archive.

    False, and no archive, if they are empty.
    """
    files = {
        str(path.relative_to(folder)): path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    if not files:
        return False
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for name, path in files.items():
            tar.add(path, arcname=name)
    return True


def _unavailable(uri: str, error: ClientError) -> Exception:
    details: Mapping[str, Any] = error.response["Error"]
    if details["Code"] not in ABSENT:
        return error
    return DataUnavailable(
        f"ClientError: Data download failed:{details['Code']}: {details.get('Message', '')} ({uri})"
    )


class CheckpointSync:
    """Uploads the files that changed since the last pass.

    Files that came from S3 are not uploaded again.
    """

    def __init__(
        self, transfer: S3Transfer, uri: str, folders: Iterable[Path], period_seconds: float
    ) -> None:
        self._transfer = transfer
        self._uri = uri.rstrip("/")
        self._folders = tuple(folders)
        self._period_seconds = period_seconds
        self._sent: dict[Path, Stamp] = {}
        self._ending = threading.Event()
        self._is_abandoned = False
        self._thread = threading.Thread(
            target=self._sync_periodically, name="checkpoints", daemon=True
        )

    def restore(self) -> None:
        for folder in self._folders:
            for path in self._transfer.download_prefix(self._uri + "/", folder, must_exist=False):
                self._sent[path] = _stamp(path)

    def start(self) -> None:
        self._thread.start()

    def finish(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Ends the thread and uploads the remaining files until ``is_over``, unless they are lost.

        The caller handles errors.
        """
        self._end_thread()
        if not self._is_abandoned:
            self._upload_changes(is_over)

    def abandon(self) -> None:
        """Ends the thread without an upload: files that are not in S3 yet are lost with the
        instance.
        """
        self._is_abandoned = True
        self._end_thread()

    def _end_thread(self) -> None:
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _sync_periodically(self) -> None:
        while not self._ending.wait(self._period_seconds):
            try:
                self._upload_changes()
            except Exception as error:  # noqa: BLE001 -- the next pass tries again, and ``finish`` raises
                LOG.warning("checkpoints not uploaded to %s this time: %s", self._uri, error)

    def _upload_changes(self, is_over: Callable[[], bool] = lambda: False) -> None:
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                # The job may remove a file during the pass; the next pass sees the change.
                with contextlib.suppress(FileNotFoundError):
                    stamp = _stamp(path) if path.is_file() else None
                    if stamp is not None and self._sent.get(path) != stamp:
                        uri = f"{self._uri}/{path.relative_to(folder).as_posix()}"
                        self._transfer.upload(path, uri, is_over=is_over)
                        self._sent[path] = stamp


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
