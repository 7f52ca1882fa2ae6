"""The trained model as a folder of this machine."""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from zlib import error as ZlibError

from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import s3_uri
from traindyno.store.results_bucket import ResultsBucket


class ModelNotLeft(TraindynoError):
    """The model stays in S3, because its folder can't be written, or its archive is damaged."""


class _Parts:
    """What ``tarfile`` reads of an archive that arrives in parts."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._left = parts, b""

    def read(self, count: int) -> bytes:
        while len(self._left) < count and (part := next(self._parts, b"")):
            self._left += part
        found, self._left = self._left[:count], self._left[count:]
        return found


def leave_model(bucket: ResultsBucket, key: str, folder: Path) -> None:
    """Unpacks the archive into ``folder``, as it arrives; files of the same names are replaced.

    Raises ModelNotLeft.
    """
    uri = s3_uri(bucket.name, key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=_Parts(bucket.read_parts(key)), mode="r|*") as archive:
            archive.extractall(folder, filter="data")  # no member leaves the folder
    except OSError as error:
        raise ModelNotLeft(
            f"the model can't be written to {folder}: {error.strerror or error}; it stays at {uri}"
        ) from error
    except (tarfile.TarError, EOFError, ZlibError) as error:
        raise ModelNotLeft(f"{uri} is no whole archive ({error}): no model in {folder}") from error
