"""The files of a dataset, local or in S3."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

from traindyno.core.run.data_formats import (
    BY_NAMES,
    DatasetFilesInvalid,
    format_of,
    is_hidden,
    split_files,
)
from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import DatasetFormat
from training.errors import WorkloadError

DataRoot = Path | str
REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
READ_BYTES = 2**23


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file of a dataset."""

    #: The path below the dataset's root, with slashes.
    name: str
    #: Opens the file, which is read a part at a time.
    open: Callable[[], BinaryIO]


def find_files(dataset: Dataset, root: DataRoot, split: str) -> list[DataFile]:
    """The data files that hold ``split``, in a folder or below an S3 prefix.

    Raises WorkloadError if there are none.
    """
    by_name = {
        file.name: file
        for file in (local_files(root) if isinstance(root, Path) else _s3_files(root))
    }
    try:
        names = split_files(list(by_name), dataset, split)
    except DatasetFilesInvalid as error:
        raise WorkloadError(f"{root}: {error}") from error
    if isinstance(root, Path) and len(names) > 1:
        _refuse_links(root, names)
    return [by_name[name] for name in names]


def _refuse_links(root: Path, names: Sequence[str]) -> None:
    first_names: dict[tuple[int, int], str] = {}
    for name in names:
        status = (root / name).stat()
        first = first_names.setdefault((status.st_dev, status.st_ino), name)
        if first != name:
            raise WorkloadError(
                f"{root}: {name} and {first} are one file with two names, a link, so that its rows "
                "would count twice; expected each file once"
            )


def files_format(dataset: Dataset, files: Sequence[DataFile]) -> DatasetFormat:
    return format_of(files[0].name) if dataset.format in BY_NAMES else dataset.format


def local_files(root: Path) -> list[DataFile]:
    if root.is_file():
        return [local_file(root, root.name)]
    paths = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*"))}
    linked = [
        name
        for name, path in paths.items()
        if path.is_dir() and path.is_symlink() and not is_hidden(name)
    ]
    if linked:
        raise WorkloadError(
            f"{root} has links to folders, which are not followed: {', '.join(linked[:10])}; "
            "expected the folders in their place"
        )
    return [local_file(path, name) for name, path in paths.items() if path.is_file()]


def local_file(path: Path, name: str) -> DataFile:
    return DataFile(name=name, open=partial(_open_local, path))


def _open_local(path: Path) -> BinaryIO:
    return path.open("rb")


def _s3_files(uri: str) -> list[DataFile]:
    prefix = uri.split("/", 3)[3] if uri.count("/") > 2 else ""
    files = [
        DataFile(
            name=row.key.removeprefix(prefix).lstrip("/"), open=partial(_open_object, uri, number)
        )
        for number, row in enumerate(_listing(uri, os.getpid()))
        if not row.key.endswith("/")
    ]
    return sorted(files, key=lambda file: file.name)


def _open_object(uri: str, number: int) -> BinaryIO:
    """Opens an object by its place in the listing.

    The listing is made again in each process, because a forked worker must not share its client.
    """
    opened: BinaryIO = _listing(uri, os.getpid())[number]
    return opened


@cache
def _listing(uri: str, _process: int) -> Any:
    try:
        # Only streaming needs it.
        from s3torchconnector import S3ClientConfig, S3MapDataset, S3ReaderConstructor  # noqa: PLC0415
    except ImportError as error:
        raise WorkloadError(
            "input_mode stream needs the package s3torchconnector, which this image lacks; "
            "expected File or FastFile"
        ) from error
    endpoint = _first(ENDPOINT_VARIABLES)
    # These readers hold a part of the object; the default ones keep all that was read.
    return S3MapDataset.from_prefix(
        uri,
        region=_first(REGION_VARIABLES) or "us-east-1",
        endpoint=endpoint,
        s3client_config=S3ClientConfig(force_path_style=endpoint is not None),
        reader_constructor=S3ReaderConstructor.range_based(buffer_size=READ_BYTES),
    )


def _first(variables: Sequence[str]) -> str | None:
    return next((os.environ[name] for name in variables if os.environ.get(name)), None)
