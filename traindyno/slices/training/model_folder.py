"""The trained model as a folder of this machine."""

import tarfile
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from typing import Any
from zlib import error as ZlibError

from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import s3_uri
from traindyno.store.results_bucket import ResultsBucket


class ModelNotLeft(TraindynoError):
    """The model stays in S3, because its folder can't be written, or its archive is damaged."""


class _Parts(RawIOBase):
    """An archive that arrives in parts."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or next(self._parts, b"")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def _check_member(member: tarfile.TarInfo) -> None:
    """Refuse members of an archive that are no files or folders, as Python does since 3.11.4."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isreg() or member.isdir()):
        raise tarfile.TarError(
            f"{member.name!r} leaves its folder, or is a link or a device; expected files and "
            "folders"
        )


def leave_model(bucket: ResultsBucket, key: str, folder: Path) -> None:
    """Unpack the archive into ``folder``, as it arrives; files of the same names are replaced.

    Raises ModelNotLeft.
    """
    uri = s3_uri(bucket.name, key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        archived = BufferedReader(_Parts(bucket.read_parts(key)))
        with tarfile.open(fileobj=archived, mode="r|*") as archive:
            for member in archive:
                _check_member(member)
                archive.extract(member, folder, set_attrs=False)
    except OSError as error:
        raise ModelNotLeft(
            f"the model can't be written to {folder}: {error.strerror or error}; it stays at {uri}"
        ) from error
    except (tarfile.TarError, EOFError, ZlibError) as error:
        raise ModelNotLeft(f"{uri} is no whole archive ({error}): no model in {folder}") from error
