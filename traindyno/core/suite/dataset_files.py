"""The data files of a dataset's folder, with their format and split, by their names alone."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from traindyno.core.errors import TraindynoError
from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.workload import Dataset

FORMATS = {
    ".csv": DatasetFormat.CSV,
    ".tsv": DatasetFormat.CSV,
    ".json": DatasetFormat.JSON,
    ".jsonl": DatasetFormat.JSON,
    ".ndjson": DatasetFormat.JSON,
    ".parquet": DatasetFormat.PARQUET,
}
COMPRESSIONS = (".gz", ".bz2", ".xz")
# Files beside the data in a repository of the Hub or of git.
NO_DATA = ("readme", "license", "licence", "citation", "changelog")
NO_DATA_FILES = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
NO_DATA_SUFFIXES = (".md", ".rst", ".py", ".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".lock", ".sh", ".png", ".jpg")

WHOLE_DATASET = "train"
# The words and the characters around them are those of the Hugging Face datasets library (datasets.data_files).
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
NO_WORD = re.compile(r"[-._ 0-9]+")


class DatasetFilesInvalid(TraindynoError):
    """The dataset has no data files, files of two formats, or not exactly one match for the requested split."""


def split_files(names: Sequence[str], dataset: Dataset, split: str) -> list[str]:
    """Those of ``names`` (paths below the dataset's root, with slashes) that hold ``split``; no file holds two splits.

    For ``train``, if no name contains it, all data files of no other split. Raises DatasetFilesInvalid.
    """
    data = data_files(names, dataset)
    if len(data) == 1 and split == WHOLE_DATASET and dataset.evaluation_split is None:
        return data
    splits = [name for name in (dataset.split, dataset.evaluation_split, split) if name is not None]
    known = {word: name for name, words in SPLIT_WORDS.items() for word in words}
    known |= {name.lower(): known.get(name.lower(), name.lower()) for name in splits}
    by_name = {name: split_of(name, known) for name in data}
    wanted = known[split.lower()]
    named = [name for name, found in by_name.items() if found == wanted]
    unclaimed = [name for name, found in by_name.items() if found is None]
    if not named and wanted == WHOLE_DATASET:
        named = unclaimed
    if not named:
        listing = ", ".join(f"{name} ({found or 'no split'})" for name, found in list(by_name.items())[:10])
        raise DatasetFilesInvalid(f"no file of the dataset belongs to the split {split!r}; its files are {listing}")
    return named


def split_of(name: str, known: Mapping[str, str]) -> str | None:
    """The split that the path's outermost folder with a split's word names, else the file's name, else None.

    ``known``: word in a name → split. Raises DatasetFilesInvalid if one name has words of two splits.
    """
    for part in name.split("/"):
        whole = part.lower().partition(".")[0]
        words = [whole] if whole in known else NO_WORD.split(part.lower())
        found = {known[word] for word in words if word in known}
        if len(found) > 1:
            raise DatasetFilesInvalid(
                f"{name} names the splits {' and '.join(sorted(found))}; expected a name with one of them"
            )
        if found:
            return found.pop()
    return None


def data_files(names: Sequence[str], dataset: Dataset) -> list[str]:
    """The names without hidden files and documentation; beside csv, json or parquet, without all else.

    Raises DatasetFilesInvalid if nothing is left, or if it is of two formats and ``dataset`` names none.
    """
    visible = [name for name in names if not _base(name).startswith((".", "_"))]
    if dataset.format is not DatasetFormat.AUTO:
        data = [name for name in visible if format_of(name) is dataset.format] or visible
    else:
        data = _of_one_format([name for name in visible if not _is_documentation(name)])
    if not data:
        found = ", ".join(names[:10]) or "no files"
        raise DatasetFilesInvalid(f"the dataset has no data files; it has {found}")
    return data


def format_of(name: str) -> DatasetFormat:
    return FORMATS.get(data_suffix(name), DatasetFormat.TEXT)


def data_suffix(name: str) -> str:
    """``.csv`` of ``train.csv`` and of ``train.csv.gz``."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    while suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _of_one_format(names: Sequence[str]) -> list[str]:
    structured = {format_of(name) for name in names} - {DatasetFormat.TEXT}
    if len(structured) > 1:
        raise DatasetFilesInvalid(
            f"the dataset has files of the formats {' and '.join(sorted(structured))} ({', '.join(names[:10])}); "
            "expected one format, or dataset.format that names the one to read"
        )
    return [name for name in names if not structured or format_of(name) in structured]


def _is_documentation(name: str) -> bool:
    base = _base(name).lower()
    return base.split(".")[0] in NO_DATA or base in NO_DATA_FILES or data_suffix(base) in NO_DATA_SUFFIXES


def _base(name: str) -> str:
    return name.rsplit("/", 1)[-1]
