"""Reads tables: csv, parquet, and the Arrow files that Hugging Face datasets saves."""

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet

from traindyno.core.suite.data_formats import data_suffix
from traindyno.core.suite.workload import Dataset
from training.data.checked_rows import Rows, checked_rows, csv_header, require_columns, wanted_columns
from training.data.file_text import Utf8Reader
from training.data.files import DataFile
from training.errors import WorkloadError

# So many rows are tokenised together.
ROWS_PER_BATCH = 500
# No row of a CSV file may be longer. Arrow reads up to 32 blocks ahead.
CSV_BLOCK_BYTES = 2**23
READ_BYTES = 2**20
# The first bytes of an Arrow file; a stream has none of its own.
ARROW_FILE = b"ARROW1"


def csv_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    """Keeps text columns as the file has them: 007 stays 007, and NA is a text. No row may be longer than a block."""
    wanted = wanted_columns(dataset, with_labels=with_labels)
    delimiter = "\t" if data_suffix(file.name) == ".tsv" else ","
    # Arrow takes a short read as its block: the buffer fills it.
    content: io.BufferedReader = io.BufferedReader(Utf8Reader(file), CSV_BLOCK_BYTES)
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


def parquet_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    try:
        table = parquet.ParquetFile(file.source(), buffer_size=READ_BYTES)
        wanted = wanted_columns(dataset, with_labels=with_labels)
        require_columns(wanted, table.schema_arrow.names, file.name)
        first = 1
        for batch in table.iter_batches(ROWS_PER_BATCH, columns=[*dict.fromkeys(wanted)]):
            part = pa.Table.from_batches([batch])
            yield from _table_rows(part, dataset, file.name, with_labels=with_labels, first_row=first)
            first += len(batch)
    except pa.ArrowInvalid as error:
        raise WorkloadError(f"{file.name} can't be read as parquet: {error}") from error


def arrow_rows(file: DataFile, dataset: Dataset, *, with_labels: bool) -> Iterator[Rows]:
    """Reads a stream of Arrow, which ``save_to_disk`` of Hugging Face datasets writes, or an Arrow file."""
    wanted = wanted_columns(dataset, with_labels=with_labels)
    try:
        with file.open() as content:
            schema, batches = _arrow_batches(content)
            require_columns(wanted, schema.names, file.name)
            first = 1
            for batch in batches:
                part = pa.Table.from_batches([batch])
                yield from _table_rows(part, dataset, file.name, with_labels=with_labels, first_row=first)
                first += len(batch)
    except (pa.ArrowInvalid, OSError) as error:
        raise WorkloadError(f"{file.name} can't be read as arrow: {error}") from error


def _arrow_batches(content: BinaryIO) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    begin = content.read(len(ARROW_FILE))
    content.seek(0)
    if begin != ARROW_FILE:
        stream = pa.ipc.open_stream(content)
        return stream.schema, stream
    whole = pa.ipc.open_file(content)
    return whole.schema, map(whole.get_batch, range(whole.num_record_batches))


def _table_rows(
    table: pa.Table, dataset: Dataset, name: str, *, with_labels: bool, first_row: int = 1
) -> Iterator[Rows]:
    wanted = wanted_columns(dataset, with_labels=with_labels)
    require_columns(wanted, table.column_names, name)
    for batch in table.select(wanted).to_batches(max_chunksize=ROWS_PER_BATCH):
        labels = _values(batch.column(1), wanted[1], name, first_row) if with_labels else None
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
