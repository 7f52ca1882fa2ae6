"""Reads the rows of a dataset, a batch at a time: the text column, and for classification the label column."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.data_formats import READABLE
from traindyno.core.suite.workload import Dataset
from training.data.checked_rows import Rows, checked_rows, described, require_columns, wanted_columns
from training.data.file_text import text_pieces, utf8_lines
from training.data.files import DataFile, files_format, local_files, split_files
from training.data.s3_objects import s3_files
from training.data.table_rows import ROWS_PER_BATCH, arrow_rows, csv_rows, parquet_rows
from training.errors import WorkloadError

DataRoot = Path | str


def read_rows(dataset: Dataset, root: DataRoot | None, split: str, *, with_labels: bool) -> Iterator[Rows]:
    """Reads from the folder or S3 prefix ``root``; without one, from the Hugging Face Hub."""
    if root is None:
        yield from _hub_rows(dataset, split, with_labels=with_labels)
    else:
        yield from file_rows(dataset, find_files(dataset, root, split), with_labels=with_labels)


def find_files(dataset: Dataset, root: DataRoot, split: str) -> list[DataFile]:
    files = local_files(root) if isinstance(root, Path) else s3_files(root)
    return split_files(files, dataset, split, str(root))


def file_rows(dataset: Dataset, files: Sequence[DataFile], *, with_labels: bool) -> Iterator[Rows]:
    """Raises WorkloadError, with file and row, for what is not text, and for a missing label."""
    file_format = files_format(dataset, files)
    if file_format is DatasetFormat.TEXT and with_labels:
        raise WorkloadError(f"{files[0].name} is text without labels; expected csv, json, parquet or arrow")
    for file in files:
        match file_format:
            case DatasetFormat.TEXT:
                yield from _text_rows(file)
            case DatasetFormat.CSV:
                yield from csv_rows(file, dataset, with_labels=with_labels)
            case DatasetFormat.JSON:
                yield from _json_rows(file, dataset, with_labels=with_labels)
            case DatasetFormat.PARQUET:
                yield from parquet_rows(file, dataset, with_labels=with_labels)
            case DatasetFormat.ARROW:
                yield from arrow_rows(file, dataset, with_labels=with_labels)
            case _:
                raise WorkloadError(f"{file.name} was to be read as {file_format}; readable are {READABLE}")


def _text_rows(file: DataFile) -> Iterator[Rows]:
    """Yields the file as one document, a long one in pieces."""
    pieces = text_pieces(file)
    piece, continues = next(pieces, ""), False
    while piece or not continues:
        following = next(pieces, "")
        yield Rows(texts=[piece], labels=None, file=file.name, continues=continues, goes_on=bool(following))
        piece, continues = following, True


def _json_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    """Reads one object a line, or one list of objects."""
    wanted = wanted_columns(dataset, with_labels=with_labels)
    objects = enumerate(_json_objects(file, wanted), start=1)
    for batch in iter(lambda: list(itertools.islice(objects, ROWS_PER_BATCH)), []):
        for row, found in batch:
            if not isinstance(found, dict):
                raise WorkloadError(f"{file.name}, row {row} is {described(found)}; expected an object")
            require_columns(wanted, list(found), f"{file.name}, row {row}")
        labels = [found[wanted[1]] for _, found in batch] if with_labels else None
        yield checked_rows([found[wanted[0]] for _, found in batch], labels, file.name, batch[0][0])


def _json_objects(file: DataFile, wanted: Sequence[str]) -> Iterator[Any]:
    """Reads line by line; a list is read whole."""
    lines, is_list = utf8_lines(file), None
    for line, found in enumerate(lines, start=1):
        text = found.strip()
        if not text:
            continue
        if is_list is None:
            is_list = text[:1] == b"["
            text += lines.read() if is_list else b""
        place = f"{file.name}, line {line}"
        try:
            value = json.loads(
                text, object_pairs_hook=_refuse_twice(place, wanted) if _may_be_twice(text, wanted) else None
            )
        except ValueError as error:
            raise WorkloadError(f"{place} is not JSON: {error}") from error
        yield from value if is_list else [value]


def _may_be_twice(text: bytes, wanted: Sequence[str]) -> bool:
    return any(text.count(json.dumps(column, ensure_ascii=False).encode()) > 1 for column in wanted)


def _refuse_twice(place: str, wanted: Sequence[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Python's reader keeps the last of two values with one name. The hook is slow, so few lines get it."""

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = [name for name, _ in pairs]
        for column in wanted:
            if found.count(column) > 1:
                raise WorkloadError(f"{place}: an object has {found.count(column)} values of {column!r}; expected one")
        return dict(pairs)

    return checked


def _hub_rows(dataset: Dataset, split: str, *, with_labels: bool) -> Iterator[Rows]:
    from datasets import ClassLabel  # noqa: PLC0415  # slow to import; only the Hub needs it

    assert dataset.path is not None
    rows = _hub_split(dataset, dataset.path, split)
    wanted = wanted_columns(dataset, with_labels=with_labels)
    first = 1
    classes = (rows.features or {}).get(dataset.label_column)
    if rows.column_names:  # others may need a decoder that is not installed
        require_columns(wanted, rows.column_names, dataset.path)
        rows = rows.select_columns([*dict.fromkeys(wanted)])
    for batch in rows.iter(ROWS_PER_BATCH):
        require_columns(wanted, list(batch), dataset.path)
        labels = batch[wanted[1]] if with_labels else None
        if labels is not None and isinstance(classes, ClassLabel):
            labels = [None if label is None or label < 0 else label for label in labels]
        yield checked_rows(batch[wanted[0]], labels, dataset.path, first)
        first += len(batch[wanted[0]])


def _hub_split(dataset: Dataset, path: str, split: str) -> Any:
    """Streams the split: only the files that are needed are read, and nothing is stored. A slice (train[:10%]) is cut
    from a copy of the whole dataset, which the job's volume must hold.
    """
    from datasets import load_dataset  # noqa: PLC0415  # slow to import; only the Hub needs it

    is_slice = "[" in split
    try:
        return load_dataset(path, dataset.name, split=split, revision=dataset.revision, streaming=not is_slice)
    except (OSError, ValueError, RuntimeError) as error:  # not found, not reachable, no such split, a Hub script
        raise WorkloadError(
            f"the dataset {path!r} can't be loaded from the Hugging Face Hub: {error}; expected an id such as "
            "nyu-mll/glue with its name and split, an S3 prefix, or a folder"
        ) from error
