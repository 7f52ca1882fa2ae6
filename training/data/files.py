"""The files of a dataset's split, and what format they are in."""

from collections.abc import Sequence
from pathlib import Path

from traindyno.core.suite import Dataset, DatasetFormat
from training.errors import WorkloadError

FORMATS = {
    ".csv": DatasetFormat.CSV,
    ".tsv": DatasetFormat.CSV,
    ".json": DatasetFormat.JSON,
    ".jsonl": DatasetFormat.JSON,
    ".parquet": DatasetFormat.PARQUET,
}
WHOLE_DATASET = "train"


def split_files(root: Path, split: str) -> list[Path]:
    """Files named for the split (``train.csv``, ``train-00000-of-00002.parquet``, ``train/…``); or, for train, all."""
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    files = [path for path in files if not path.name.startswith((".", "_"))]
    if not files:
        raise WorkloadError(f"the dataset at {root} holds no files")
    named = [path for path in files if _is_of_split(path.relative_to(root.parent if root.is_file() else root), split)]
    if named or split != WHOLE_DATASET:
        if not named:
            found = ", ".join(path.name for path in files[:10])
            raise WorkloadError(f"no file of the dataset belongs to the split {split!r}; its files are {found}")
        return named
    return files


def _is_of_split(relative: Path, split: str) -> bool:
    return relative.parts[0] == split or relative.name.split(".")[0].split("-")[0] == split


def files_format(dataset: Dataset, files: Sequence[Path]) -> DatasetFormat:
    if dataset.format is not DatasetFormat.AUTO:
        return dataset.format
    found = {FORMATS.get(path.suffix.lower(), DatasetFormat.TEXT) for path in files}
    return found.pop() if len(found) == 1 else DatasetFormat.TEXT
