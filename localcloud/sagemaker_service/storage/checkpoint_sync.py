"""Synchronises a job's checkpoint folders with their S3 prefix while the job runs."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer

LOG = logging.getLogger(__name__)
Stamp = tuple[int, int]


class CheckpointSync:
    """Uploads the files that changed since the last pass. Files that came from S3 are not uploaded again."""

    def __init__(self, transfer: S3Transfer, uri: str, folders: Iterable[Path], period_seconds: float) -> None:
        self._transfer = transfer
        self._uri = uri.rstrip("/")
        self._folders = tuple(folders)
        self._period_seconds = period_seconds
        self._sent: dict[Path, Stamp] = {}
        self._ending = threading.Event()
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._sync_periodically, name="checkpoints", daemon=True)

    def restore(self) -> None:
        for folder in self._folders:
            for path in self._transfer.download_prefix(self._uri + "/", folder, must_exist=False):
                self._sent[path] = _stamp(path)

    def start(self) -> None:
        self._thread.start()

    def finish(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Ends the thread and uploads the remaining files until ``is_over``, unless they are lost. The caller handles
        errors.
        """
        self._end_thread()
        if not self._is_abandoned:
            self._upload_changes(is_over)

    def abandon(self) -> None:
        """Ends the thread without an upload: files that are not in S3 yet are lost with the instance."""
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
                    self._upload_if_changed(path, folder, is_over)

    def _upload_if_changed(self, path: Path, folder: Path, is_over: Callable[[], bool]) -> None:
        stamp = _stamp(path) if path.is_file() else None
        if stamp is not None and self._sent.get(path) != stamp:
            self._transfer.upload(path, f"{self._uri}/{path.relative_to(folder).as_posix()}", is_over=is_over)
            self._sent[path] = stamp


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
