"""Rows of a dataset, a batch at a time: the text column, and for classification the label column."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, json, parquet

from traindyno.core.suite.suite import Dataset, DatasetFormat
from training.data.files import DataFile, files_format, local_files, split_files
from training.data.s3_objects import s3_files
from training.errors import WorkloadError

ROWS_PER_BATCH = 2000

DataRoot = Path | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    texts: list[str]
    labels: list[object] | None


def read_rows(dataset: Dataset, root: DataRoot | None, split: str, *, with_labels: bool) -> Iterator[Rows]:
    """From the folder or S3 prefix ``root``; without one, from the Hugging Face Hub."""
    if root is None:
        yield from _hub_rows(dataset, split, with_labels=with_labels)
    else:
        yield from file_rows(dataset, find_files(root, split), with_labels=with_labels)


def find_files(root: DataRoot, split: str) -> list[DataFile]:
    return split_files(local_files(root) if isinstance(root, Path) else s3_files(root), split, str(root))


def file_rows(dataset: Dataset, files: Sequence[DataFile], *, with_labels: bool) -> Iterator[Rows]:
    file_format = files_format(dataset, files)
    if file_format is not DatasetFormat.TEXT:
        for file in files:
            for table in _tables(file, file_format):
                yield from _table_rows(table, dataset, file.name, with_labels=with_labels)
        return
    if with_labels:
        raise WorkloadError(f"{files[0].name} is text without labels; expected csv, json or parquet")
    for file in files:
        yield Rows(texts=[file.read().decode(encoding="utf-8", errors="replace")], labels=None)


def _tables(file: DataFile, file_format: DatasetFormat) -> Iterator[pa.Table]:
    try:
        match file_format:
            case DatasetFormat.CSV:
                delimiter = "\t" if file.name.lower().endswith(".tsv") else ","
                options = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
                yield csv.read_csv(file.source(), parse_options=options)
            case DatasetFormat.JSON:
                yield json.read_json(file.source())
            case DatasetFormat.PARQUET:
                for batch in parquet.ParquetFile(file.source()).iter_batches(ROWS_PER_BATCH):
                    yield pa.Table.from_batches([batch])
            case _:
                raise WorkloadError(f"{file.name} was to be read as {file_format}; expected csv, json or parquet")
    except pa.ArrowInvalid as error:
        raise WorkloadError(f"{file.name} can't be read as {file_format}: {error}") from error


def _table_rows(table: pa.Table, dataset: Dataset, name: str, *, with_labels: bool) -> Iterator[Rows]:
    wanted = _wanted_columns(dataset, with_labels=with_labels)
    _require_columns(wanted, table.column_names, name)
    for batch in table.select(wanted).to_batches(max_chunksize=ROWS_PER_BATCH):
        texts = ["" if text is None else str(text) for text in batch.column(0).to_pylist()]
        yield Rows(texts=texts, labels=batch.column(1).to_pylist() if with_labels else None)


def _wanted_columns(dataset: Dataset, *, with_labels: bool) -> list[str]:
    return [dataset.text_column, *([dataset.label_column] if with_labels else [])]


def _require_columns(wanted: Sequence[str], found: Sequence[str], name: str) -> None:
    missing = [column for column in wanted if column not in found]
    if missing:
        raise WorkloadError(f"{name} has no column {', '.join(map(repr, missing))}; its columns are {', '.join(found)}")


def _hub_rows(dataset: Dataset, split: str, *, with_labels: bool) -> Iterator[Rows]:
    from datasets import load_dataset  # noqa: PLC0415  # slow to import and seldom needed

    assert dataset.path is not None
    try:
        rows = load_dataset(dataset.path, dataset.name, split=split, revision=dataset.revision)
    except (OSError, ValueError) as error:  # not found, not reachable, no such split, not a Hub id
        raise WorkloadError(
            f"the dataset {dataset.path!r} can't be loaded from the Hugging Face Hub: {error}; expected an id such as "
            "nyu-mll/glue with its name and split, an S3 prefix, or a folder"
        ) from error
    wanted = _wanted_columns(dataset, with_labels=with_labels)
    _require_columns(wanted, rows.column_names, dataset.path)
    for batch in rows.select_columns(wanted).iter(ROWS_PER_BATCH):
        yield Rows(texts=batch[wanted[0]], labels=batch[wanted[1]] if with_labels else None)
