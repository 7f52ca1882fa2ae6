"""Reads the rows of a dataset, a batch at a time: the text column, and for classification the label column."""

import io
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.data_formats import data_suffix
from traindyno.core.suite.workload import Dataset
from training.data.file_text import Utf8Reader, text_pieces, utf8_lines
from training.data.files import DataFile, files_format, local_files, split_files
from training.data.row_checks import check_labels, check_texts, csv_header, described, require_columns
from training.data.s3_objects import s3_files
from training.errors import WorkloadError

# So many rows are tokenised together.
ROWS_PER_BATCH = 500
# No row of a CSV file may be longer. Arrow reads up to 32 blocks ahead.
CSV_BLOCK_BYTES = 2**23
READ_BYTES = 2**20

DataRoot = Path | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """``first_row`` is the number, from 1, of the first of these rows in ``file``; messages name it.

    ``continues`` if the one text is a further piece of the file's text, ``goes_on`` if it is not the last piece.
    """

    texts: list[str]
    labels: list[object] | None
    file: str
    first_row: int = 1
    continues: bool = False
    goes_on: bool = False


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
        raise WorkloadError(f"{files[0].name} is text without labels; expected csv, json or parquet")
    for file in files:
        match file_format:
            case DatasetFormat.TEXT:
                yield from _text_rows(file)
            case DatasetFormat.CSV:
                yield from _csv_rows(file, dataset, with_labels=with_labels)
            case DatasetFormat.JSON:
                yield from _json_rows(file, dataset, with_labels=with_labels)
            case DatasetFormat.PARQUET:
                yield from _parquet_rows(file, dataset, with_labels=with_labels)
            case _:
                raise WorkloadError(f"{file.name} was to be read as {file_format}; expected csv, json or parquet")


def _text_rows(file: DataFile) -> Iterator[Rows]:
    """Yields the file as one document, a long one in pieces."""
    pieces = text_pieces(file)
    piece, continues = next(pieces, ""), False
    while piece or not continues:
        following = next(pieces, "")
        yield Rows(texts=[piece], labels=None, file=file.name, continues=continues, goes_on=bool(following))
        piece, continues = following, True


def _csv_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    """Keeps text columns as the file has them: 007 stays 007, and NA is a text. No row may be longer than a block."""
    wanted = _wanted_columns(dataset, with_labels=with_labels)
    delimiter = "\t" if data_suffix(file.name) == ".tsv" else ","
    # Arrow takes a short read as its block: the buffer fills it.
    content = io.BufferedReader(Utf8Reader(file), CSV_BLOCK_BYTES)
    header = csv_header(content, delimiter)
    if header:
        require_columns(wanted, header, file.name)
    try:
        first = 1
        for batch in _csv_reader(content, wanted, delimiter):
            table = pa.Table.from_batches([batch])
            yield from _table_rows(table, dataset, file.name, with_labels=with_labels, first_row=first)
            first += len(batch)
    except pa.ArrowInvalid as error:
        limit = f"no row may be longer than {CSV_BLOCK_BYTES // 2**20} MiB"
        raise WorkloadError(f"{file.name} can't be read as csv: {error}; {limit}") from error


def _csv_reader(content: io.BufferedReader, columns: Sequence[str], delimiter: str) -> csv.CSVStreamingReader:
    convert = csv.ConvertOptions(
        include_columns=[*dict.fromkeys(columns)],
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=False,
    )
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    read = csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False)
    return csv.open_csv(
        pa.PythonFile(content, mode="r"), parse_options=parse, convert_options=convert, read_options=read
    )


def _json_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    """Reads one object a line, or one list of objects."""
    wanted = _wanted_columns(dataset, with_labels=with_labels)
    objects = enumerate(_json_objects(file), start=1)
    for batch in iter(lambda: list(itertools.islice(objects, ROWS_PER_BATCH)), []):
        for row, found in batch:
            if not isinstance(found, dict):
                raise WorkloadError(f"{file.name}, row {row} is {described(found)}; expected an object")
            require_columns(wanted, list(found), f"{file.name}, row {row}")
        labels = [found[wanted[1]] for _, found in batch] if with_labels else None
        yield _checked([found[wanted[0]] for _, found in batch], labels, file.name, batch[0][0])


def _json_objects(file: DataFile) -> Iterator[Any]:
    """Reads line by line; a list is read whole."""
    lines, is_list = utf8_lines(file), None
    for line, found in enumerate(lines, start=1):
        text = found.strip()
        if not text:
            continue
        if is_list is None:
            is_list = text[:1] == b"["
            text += lines.read() if is_list else b""
        try:
            value = json.loads(text)
        except ValueError as error:
            raise WorkloadError(f"{file.name}, line {line} is not JSON: {error}") from error
        yield from value if is_list else [value]


def _parquet_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    try:
        table = parquet.ParquetFile(file.source(), buffer_size=READ_BYTES)
        wanted = _wanted_columns(dataset, with_labels=with_labels)
        require_columns(wanted, table.schema_arrow.names, file.name)
        first = 1
        for batch in table.iter_batches(ROWS_PER_BATCH, columns=[*dict.fromkeys(wanted)]):
            part = pa.Table.from_batches([batch])
            yield from _table_rows(part, dataset, file.name, with_labels=with_labels, first_row=first)
            first += len(batch)
    except pa.ArrowInvalid as error:
        raise WorkloadError(f"{file.name} can't be read as parquet: {error}") from error


def _table_rows(
    table: pa.Table, dataset: Dataset, name: str, *, with_labels: bool, first_row: int = 1
) -> Iterator[Rows]:
    wanted = _wanted_columns(dataset, with_labels=with_labels)
    require_columns(wanted, table.column_names, name)
    for batch in table.select(wanted).to_batches(max_chunksize=ROWS_PER_BATCH):
        labels = _values(batch.column(1), wanted[1], name, first_row) if with_labels else None
        yield _checked(_values(batch.column(0), wanted[0], name, first_row), labels, name, first_row)
        first_row += len(batch)


def _values(column: pa.Array, label: str, name: str, first_row: int) -> list[object]:
    """Raises WorkloadError for a text of which the file says that it is UTF-8, but which is not."""
    try:
        values: list[object] = column.to_pylist()
    except UnicodeDecodeError:
        for row, value in enumerate(column, start=first_row):
            try:
                value.as_py()
            except UnicodeDecodeError as error:
                found = f"the column {label!r} has {error.object[:20]!r}, which is not UTF-8"
                raise WorkloadError(f"{name}, row {row}: {found}; expected text") from error
        raise
    return values


def _checked(texts: Sequence[object], labels: list[object] | None, name: str, first_row: int) -> Rows:
    check_labels(labels or [], name, first_row)
    return Rows(texts=check_texts(texts, name, first_row), labels=labels, file=name, first_row=first_row)


def _wanted_columns(dataset: Dataset, *, with_labels: bool) -> list[str]:
    return [dataset.text_column, *([dataset.label_column] if with_labels else [])]


def _hub_rows(dataset: Dataset, split: str, *, with_labels: bool) -> Iterator[Rows]:
    from datasets import ClassLabel  # noqa: PLC0415  # slow to import; only the Hub needs it

    assert dataset.path is not None
    rows = _hub_split(dataset, dataset.path, split)
    wanted = _wanted_columns(dataset, with_labels=with_labels)
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
        yield _checked(batch[wanted[0]], labels, dataset.path, first)
        first += len(batch[wanted[0]])


def _hub_split(dataset: Dataset, path: str, split: str) -> Any:
    """Streams the split: only the files that are needed are read, and nothing is stored. A slice (train[:10%]) is cut
    from a copy of the whole dataset, which the job's volume must hold.
    """
    from datasets import load_dataset  # noqa: PLC0415  # slow to import; only the Hub needs it

    is_slice = "[" in split
    try:
        return load_dataset(path, dataset.name, split=split, revision=dataset.revision, streaming=not is_slice)
    except (OSError, ValueError) as error:  # not found, not reachable, no such split, not a Hub id
        raise WorkloadError(
            f"the dataset {path!r} can't be loaded from the Hugging Face Hub: {error}; expected an id such as "
            "nyu-mll/glue with its name and split, an S3 prefix, or a folder"
        ) from error
