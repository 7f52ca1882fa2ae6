"""The files of a dataset, local or in S3: which belong to a split, and what format they are in."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Protocol

from traindyno.core.suite.dataset_splits import SplitUnknown, files_of_split
from traindyno.core.suite.suite import Dataset, DatasetFormat
from training.errors import WorkloadError

FORMATS = {
    ".csv": DatasetFormat.CSV,
    ".tsv": DatasetFormat.CSV,
    ".json": DatasetFormat.JSON,
    ".jsonl": DatasetFormat.JSON,
    ".ndjson": DatasetFormat.JSON,
    ".parquet": DatasetFormat.PARQUET,
}
COMPRESSIONS = (".gz", ".bz2", ".xz")
# What lies beside data in a repository of the Hub or of git, and is none.
NO_DATA = ("readme", "license", "licence", "citation", "changelog")
NO_DATA_FILES = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
NO_DATA_SUFFIXES = (".md", ".rst", ".py", ".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".lock", ".sh", ".png", ".jpg")


class DataFile(Protocol):
    """``name`` is the path below the dataset's root, with slashes."""

    @property
    def name(self) -> str: ...

    def read(self) -> bytes: ...

    def source(self) -> str | BytesIO:
        """What pyarrow reads from, a part at a time where that is possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    name: str
    path: Path

    def read(self) -> bytes:
        return self.path.read_bytes()

    def source(self) -> str | BytesIO:
        return str(self.path)


def local_files(root: Path) -> list[DataFile]:
    if root.is_file():
        return [LocalFile(name=root.name, path=root)]
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return [LocalFile(name=path.relative_to(root).as_posix(), path=path) for path in paths]


def split_files(files: Sequence[DataFile], dataset: Dataset, split: str, where: str) -> list[DataFile]:
    """The data files that belong to ``split``; see ``files_of_split``. Raises WorkloadError if there are none."""
    by_name = {file.name: file for file in data_files(files, dataset)}
    if not by_name:
        found = ", ".join(file.name for file in files[:10]) or "no files"
        raise WorkloadError(f"the dataset at {where} has no data files; it has {found}")
    if len(by_name) == 1 and split == dataset.split and dataset.evaluation_split is None:
        return list(by_name.values())
    others = [name for name in (dataset.split, dataset.evaluation_split) if name is not None]
    try:
        return [by_name[name] for name in files_of_split(list(by_name), split, others=others)]
    except SplitUnknown as error:
        raise WorkloadError(str(error)) from error


def data_files(files: Sequence[DataFile], dataset: Dataset) -> list[DataFile]:
    """Without hidden files, documentation and, beside csv, json or parquet, everything else."""
    visible = [file for file in files if not _base(file).startswith((".", "_"))]
    if dataset.format is not DatasetFormat.AUTO:
        asked = [file for file in visible if format_of(file) is dataset.format]
        return asked or visible
    data = [file for file in visible if not _is_documentation(file)]
    structured = {format_of(file) for file in data} - {DatasetFormat.TEXT}
    if len(structured) > 1:
        found = ", ".join(file.name for file in data[:10])
        raise WorkloadError(
            f"the dataset has files of the formats {' and '.join(sorted(structured))} ({found}); expected one "
            "format, or dataset.format that names the one to read"
        )
    return [file for file in data if not structured or format_of(file) in structured]


def files_format(dataset: Dataset, files: Sequence[DataFile]) -> DatasetFormat:
    return format_of(files[0]) if dataset.format is DatasetFormat.AUTO else dataset.format


def format_of(file: DataFile) -> DatasetFormat:
    return FORMATS.get(data_suffix(file.name), DatasetFormat.TEXT)


def data_suffix(name: str) -> str:
    """``.csv`` of ``train.csv`` and of ``train.csv.gz``."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    while suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _is_documentation(file: DataFile) -> bool:
    base = _base(file).lower()
    return base.split(".")[0] in NO_DATA or base in NO_DATA_FILES or data_suffix(base) in NO_DATA_SUFFIXES


def _base(file: DataFile) -> str:
    return file.name.rsplit("/", 1)[-1]
