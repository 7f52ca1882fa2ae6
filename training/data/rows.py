"""Reads the rows of a dataset, a batch at a time: the text column, and for classification the label column."""

import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet

from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.data_formats import READABLE, data_suffix
from traindyno.core.suite.workload import Dataset
from training.data.checked_rows import (
    SHOWN_CHARACTERS,
    Rows,
    check_quotes,
    checked_rows,
    csv_header,
    described,
    require_columns,
    wanted_columns,
)
from training.data.file_text import Utf8Reader, text_pieces, utf8_lines
from training.data.files import DataFile, LocalFile, files_format, local_files, split_files
from training.errors import WorkloadError

# So many rows are tokenised together.
ROWS_PER_BATCH = 500
# No row of a CSV file may be longer. Arrow reads up to 32 blocks ahead.
LONGEST_ERROR = 300
CSV_BLOCK_BYTES = 2**23
PARQUET_READ_BYTES = 2**20
SHOWN_FILES = 3
# The first bytes of an Arrow file; a stream has none of its own.
ARROW_FILE = b"ARROW1"


def csv_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    """Keeps text columns as the file has them: 007 stays 007, and NA is a text. No row may be longer than a block."""
    wanted = wanted_columns(dataset, with_labels=with_labels)
    delimiter = "\t" if data_suffix(file.name) == ".tsv" else ","
    # Arrow takes a short read as its block: the buffer fills it.
    content: io.BufferedReader = io.BufferedReader(Utf8Reader(file), CSV_BLOCK_BYTES)
    if not content.peek(1):
        return
    header = csv_header(content, delimiter)
    if header:
        require_columns(wanted, header, file.name)
    if isinstance(file, LocalFile):  # a stream isn't read twice
        text = io.TextIOWrapper(utf8_lines(file), encoding="utf-8", newline="")
        check_quotes(text, delimiter, file.name, longest=CSV_BLOCK_BYTES)
    try:
        yield from _table_rows(_csv_reader(content, wanted, delimiter), wanted, file.name)
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):  # a header alone, without the end of its line
            return
        is_long = "straddling" in str(error) or "block" in str(error)
        limit = f"no row may be longer than {CSV_BLOCK_BYTES // 2**20} MiB, or a quote is not closed"
        expected = limit if is_long else "expected as many fields in each row as in the header, and each quote closed"
        found = " ".join(str(error)[:LONGEST_ERROR].split())
        raise WorkloadError(f"{file.name} can't be read as csv: {found}; {expected}") from error


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


def parquet_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    try:
        table = parquet.ParquetFile(file.source(), buffer_size=PARQUET_READ_BYTES)
        wanted = wanted_columns(dataset, with_labels=with_labels)
        require_columns(wanted, table.schema_arrow.names, file.name)
        batches = table.iter_batches(ROWS_PER_BATCH, columns=[*dict.fromkeys(wanted)])
        yield from _table_rows(batches, wanted, file.name)
    except pa.ArrowInvalid as error:
        raise WorkloadError(f"{file.name} can't be read as parquet: {error}; expected a whole Parquet file") from error


def arrow_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    """Reads a stream of Arrow, which ``save_to_disk`` of Hugging Face datasets writes, or an Arrow file."""
    wanted = wanted_columns(dataset, with_labels=with_labels)
    try:
        with file.open() as content:
            schema, batches = arrow_batches(content)
            require_columns(wanted, schema.names, file.name)
            yield from _table_rows(batches, wanted, file.name)
    except (pa.ArrowInvalid, OSError) as error:
        raise WorkloadError(f"{file.name} can't be read as arrow: {error}; expected a whole Arrow file") from error


def arrow_batches(content: BinaryIO) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    begin = content.read(len(ARROW_FILE))
    content.seek(0)
    if begin != ARROW_FILE:
        stream = pa.ipc.open_stream(content)
        return stream.schema, stream
    whole = pa.ipc.open_file(content)
    return whole.schema, map(whole.get_batch, range(whole.num_record_batches))


def _table_rows(batches: Iterable[pa.RecordBatch], wanted: Sequence[str], name: str) -> Iterator[Rows]:
    """``wanted``: the column of the texts, and that of the labels if they are read."""
    first_row = 1
    for whole in batches:
        table = pa.Table.from_batches([whole])
        require_columns(wanted, table.column_names, name)
        for batch in table.select(wanted).to_batches(max_chunksize=ROWS_PER_BATCH):
            labels = _values(batch.column(1), wanted[1], name, first_row) if len(wanted) > 1 else None
            yield checked_rows(_values(batch.column(0), wanted[0], name, first_row), labels, name, first_row)
            first_row += len(batch)


def _values(column: pa.Array, label: str, name: str, first_row: int) -> list[object]:
    """The values of ``column`` [N]. Raises WorkloadError for one that should be UTF-8 as the file says, but is not."""
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


REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
READ_BYTES = 2**23
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Object:
    name: str
    uri: str
    number: int  # its place in the listing

    def open(self) -> BinaryIO:
        # The listing is made again in each process: its client must not be shared with a forked worker.
        opened: BinaryIO = _listing(self.uri, os.getpid())[self.number]
        return opened

    def source(self) -> str | BinaryIO:
        return self.open()


def s3_files(uri: str) -> list[DataFile]:
    listing = _listing(uri, os.getpid())
    prefix = uri.split("/", 3)[3] if uri.count("/") > 2 else ""
    keys = [listing[number].key for number in range(len(listing))]
    return sorted(
        (
            S3Object(name=key.removeprefix(prefix).lstrip("/"), uri=uri, number=number)
            for number, key in enumerate(keys)
            if not key.endswith("/")
        ),
        key=lambda found: found.name,
    )


@cache
def _listing(uri: str, _process: int) -> Any:
    try:
        # Only streaming needs it.
        from s3torchconnector import S3ClientConfig, S3MapDataset, S3ReaderConstructor  # noqa: PLC0415
    except ImportError as error:
        raise WorkloadError(
            "input_mode stream needs the package s3torchconnector, which this image lacks; expected File or FastFile"
        ) from error
    endpoint = _first(os.environ, ENDPOINT_VARIABLES)
    config = S3ClientConfig(force_path_style=endpoint is not None)
    region = _first(os.environ, REGION_VARIABLES) or "us-east-1"
    # These readers hold a part of the object; the default ones keep all that was read.
    reader = S3ReaderConstructor.range_based(buffer_size=READ_BYTES)
    return S3MapDataset.from_prefix(
        uri, region=region, endpoint=endpoint, s3client_config=config, reader_constructor=reader
    )


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


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
    has_rows = False
    for file in files:
        for rows in _rows_of(file, file_format, dataset, with_labels=with_labels):
            has_rows = has_rows or bool(rows.texts)
            yield rows
    if not has_rows:
        raise WorkloadError(
            f"{', '.join(file.name for file in files[:SHOWN_FILES])} has no rows; expected at least one"
        )


def _rows_of(file: DataFile, file_format: DatasetFormat, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    match file_format:
        case DatasetFormat.TEXT:
            return _text_rows(file)
        case DatasetFormat.CSV:
            return csv_rows(file, dataset, with_labels=with_labels)
        case DatasetFormat.JSON:
            return _json_rows(file, dataset, with_labels=with_labels)
        case DatasetFormat.PARQUET:
            return parquet_rows(file, dataset, with_labels=with_labels)
        case DatasetFormat.ARROW:
            return arrow_rows(file, dataset, with_labels=with_labels)
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
    objects = enumerate(json_objects(file, wanted), start=1)
    for batch in iter(lambda: list(itertools.islice(objects, ROWS_PER_BATCH)), []):
        for row, found in batch:
            if not isinstance(found, dict):
                raise WorkloadError(f"{file.name}, row {row} is {described(found)}; expected an object")
            require_columns(wanted, list(found), f"{file.name}, row {row}")
        labels = [found[wanted[1]] for _, found in batch] if with_labels else None
        yield checked_rows([found[wanted[0]] for _, found in batch], labels, file.name, batch[0][0])


def json_objects(file: DataFile, wanted: Sequence[str]) -> Iterator[Any]:
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
            names = (json.dumps(column, ensure_ascii=False).encode() for column in wanted)
            hook = _refuse_twice(place, wanted) if any(text.count(name) > 1 for name in names) else None
            value = json.loads(text, object_pairs_hook=hook)
        except ValueError as error:
            shown = text[:SHOWN_CHARACTERS].decode(errors="replace").partition("\n")[0]
            why = "one object in several lines" if text == b"{" else str(error)
            if text[:1] not in b"{[":
                why = f"it begins with {shown!r}"
            elif is_list and "Extra data" in str(error):
                why = "a list on each line"
            expected = "expected one object a line, or one list of objects"
            raise WorkloadError(f"{place} is not JSON: {why}; {expected}") from error
        yield from value if is_list else [value]


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
