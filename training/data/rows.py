"""Reads the rows of a dataset, a batch at a time, with the columns that its task needs."""

import csv
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from traindyno.core.documents.problems import one_of
from traindyno.core.run.data_formats import READABLE, ROW_FORMATS, data_suffix
from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import DatasetFormat
from training.data.checked_rows import (
    SHOWN_CHARACTERS,
    Rows,
    check_labels,
    check_texts,
    described,
    header_hint,
    require_columns,
    wanted_columns,
)
from training.data.file_text import text_lines, text_pieces
from training.data.files import DataFile, DataRoot, files_format, find_files
from training.errors import WorkloadError

# So many rows are tokenised together.
ROWS_PER_BATCH = 500
LONGEST_CSV_VALUE = 2**23
PARQUET_READ_BYTES = 2**20
SHOWN_FILES = 3
DELIMITERS = (",", ";", "\t")
SNIFFED_LINES = 20
# The first bytes of an Arrow file; a stream has none of its own.
ARROW_FILE = b"ARROW1"

Objects = Iterator[Mapping[str, Any]]


def read_rows(
    dataset: Dataset, root: DataRoot | None, split: str, *, with_labels: bool
) -> Iterator[Rows]:
    """Reads from the folder or S3 prefix ``root``; without one, from the Hugging Face Hub."""
    if root is not None:
        return file_rows(dataset, find_files(dataset, root, split), with_labels=with_labels)
    assert dataset.path is not None
    wanted = wanted_columns(dataset, with_labels=with_labels)
    return _checked(hub_objects(dataset, dataset.path, split, wanted), wanted, dataset.path)


def file_rows(dataset: Dataset, files: Sequence[DataFile], *, with_labels: bool) -> Iterator[Rows]:
    """Raises WorkloadError, with file and row, for what is not text, and for a missing label."""
    file_format = files_format(dataset, files)
    is_text = file_format is DatasetFormat.TEXT
    if is_text and with_labels:
        raise WorkloadError(
            f"{files[0].name} is text without labels; expected {one_of(ROW_FORMATS)}"
        )
    wanted = wanted_columns(dataset, with_labels=with_labels)
    has_rows = False
    for file in files:
        for rows in (
            _text_rows(file)
            if is_text
            else _checked(objects(file, file_format, wanted), wanted, file.name)
        ):
            has_rows = has_rows or bool(rows.texts)
            yield rows
    if not has_rows:
        _refuse_empty(files)


def file_objects(
    dataset: Dataset, files: Sequence[DataFile]
) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Each row with all of its columns, its file's name and its number, from 1.

    Raises WorkloadError for files of text, and for those without rows.
    """
    kind = files_format(dataset, files)
    if kind is DatasetFormat.TEXT:
        raise WorkloadError(f"{files[0].name} is text; expected {one_of(ROW_FORMATS)}")
    number = 0
    for file in files:
        for number, values in enumerate(objects(file, kind, ()), start=1):
            yield file.name, number, values
    if not number:
        _refuse_empty(files)


def _refuse_empty(files: Sequence[DataFile]) -> None:
    names = ", ".join(file.name for file in files[:SHOWN_FILES])
    raise WorkloadError(f"{names} has no rows; expected at least one")


def _text_rows(file: DataFile) -> Iterator[Rows]:
    """Yields the file as one document, a long one in pieces."""
    pieces = text_pieces(file)
    piece = next(pieces, "")
    continues = False
    while piece or not continues:
        following = next(pieces, "")
        yield Rows(
            texts=[piece], labels=None, file=file.name, continues=continues, goes_on=bool(following)
        )
        piece = following
        continues = True


def _checked(documents: Iterable[Any], wanted: Sequence[str], name: str) -> Iterator[Rows]:
    """Yields checked rows of the documents of a file.

    The columns ``wanted`` are the column of the texts and, if labels are read, their column.
    """
    numbered = enumerate(documents, start=1)
    needed = set(wanted)
    for batch in iter(lambda: list(itertools.islice(numbered, ROWS_PER_BATCH)), []):
        for row, values in batch:
            if not isinstance(values, dict):
                raise WorkloadError(f"{name}, row {row} is {described(values)}; expected an object")
            if not needed <= values.keys():
                require_columns(wanted, list(values), f"{name}, row {row}")
        texts, *labels = ([values[column] for _, values in batch] for column in wanted)
        first_row = batch[0][0]
        check_labels(labels[0] if labels else [], name, first_row)
        yield Rows(
            texts=check_texts(texts, name, first_row),
            labels=labels[0] if labels else None,
            file=name,
            first_row=first_row,
        )


def objects(file: DataFile, file_format: DatasetFormat, wanted: Sequence[str]) -> Objects:
    """Yields the rows of a file with the columns ``wanted``, or with all columns if none is.

    A row of JSON may be no mapping.

    Raises WorkloadError if a column is missing, or the file can't be read.
    """
    readers = {
        DatasetFormat.CSV: _csv_objects,
        DatasetFormat.JSON: _json_objects,
        DatasetFormat.PARQUET: _parquet_objects,
        DatasetFormat.ARROW: _arrow_objects,
    }
    read = readers.get(file_format)
    if read is None:
        raise WorkloadError(f"{file.name} was to be read as {file_format}; readable are {READABLE}")
    try:
        yield from read(file, wanted)
    except RecursionError as error:
        raise WorkloadError(
            f"{file.name} has values of more levels within each other than can be read; expected "
            "texts, numbers, or a few levels"
        ) from error
    except (pa.ArrowInvalid, OSError) as error:
        expected = f"expected a whole {file_format.capitalize()} file"
        raise WorkloadError(
            f"{file.name} can't be read as {file_format}: {error}; {expected}"
        ) from error


def _csv_objects(file: DataFile, wanted: Sequence[str]) -> Objects:
    """Keeps the values as the file has them: 007 stays 007, and NA is a text.

    An empty line is no row.

    A quote that ends its value too early or never is refused: text or rows would be lost.
    """
    csv.field_size_limit(LONGEST_CSV_VALUE)
    delimiter = "\t" if data_suffix(file.name) == ".tsv" else ","
    content = text_lines(file)
    first_lines = [*itertools.islice(content, SNIFFED_LINES)]
    content = itertools.chain(first_lines, content)
    if delimiter == ",":
        delimiter = sniff_delimiter(first_lines)
    lines = csv.reader(content, delimiter=delimiter, strict=True)
    rows = filter(None, lines)
    try:
        header = next(rows, None)
        first = next(rows, None)
        if header is None or (first is None and header_hint(header) is None):
            return  # what a header alone lacks is rows
        require_columns(wanted, header, file.name)
        for row in itertools.chain(filter(None, [first]), rows):
            if len(row) != len(header):
                expected = "; ".join(
                    filter(None, (f"expected {len(header)}, as in the header", header_hint(header)))
                )
                raise WorkloadError(
                    f"{file.name}, line {lines.line_num}: the row has {len(row)} fields; {expected}"
                )
            yield dict(zip(header, row, strict=True))
    except csv.Error as error:
        closed = 'expected each quoted value closed, and a quote in it written twice, as ""'
        reasons = {
            "expected after": f"text follows a closing quote; {closed}",
            "end of data": f"a quote is open; {closed}",
            "field limit": (
                f"a value is longer than {LONGEST_CSV_VALUE:,} characters, or a quote is not closed"
            ),
        }
        why = next((why for words, why in reasons.items() if words in str(error)), str(error))
        raise WorkloadError(f"{file.name}, line {lines.line_num}: {why}") from error


def sniff_delimiter(lines: Sequence[str]) -> str:
    """A comma, unless the header has none: then a semicolon or a tab that divides all first rows
    alike, as spreadsheets of many countries write .csv files.
    """
    for delimiter in DELIMITERS:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        widths = {len(row) for row in (rows[:-1] if len(lines) == SNIFFED_LINES else rows)}
        if (rows and delimiter == "," and len(rows[0]) > 1) or (len(widths) == 1 and widths != {1}):
            return delimiter
    return ","


def _json_objects(file: DataFile, wanted: Sequence[str]) -> Iterator[Any]:
    """Reads one object a line, line by line, or one list of objects, which is read whole."""
    lines = text_lines(file)
    is_list = None
    for line, content in enumerate(lines, start=1):
        text = content.strip()
        if not text:
            continue
        if is_list is None:
            is_list = text[0] == "["
            text += "".join(lines) if is_list else ""
        place = f"{file.name}, line {line}"
        try:
            names = (json.dumps(column, ensure_ascii=False) for column in wanted)
            hook = (
                _refuse_twice(place, wanted)
                if any(text.count(name) > 1 for name in names)
                else None
            )
            value = json.loads(text, object_pairs_hook=hook)
        except ValueError as error:
            shown = text[:SHOWN_CHARACTERS].partition("\n")[0]
            why = "one object in several lines" if text == "{" else str(error)
            if text[0] not in "{[":
                why = f"it begins with {shown!r}"
            elif is_list and "Extra data" in str(error):
                why = "a list on each line"
            expected = "expected one object a line, or one list of objects"
            raise WorkloadError(f"{place} is not JSON: {why}; {expected}") from error
        yield from value if is_list else [value]


def _refuse_twice(
    place: str, wanted: Sequence[str]
) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Python's reader keeps the last of two values with one name.

    The hook is slow, so few lines get it.
    """

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for column in wanted:
            if names.count(column) > 1:
                raise WorkloadError(
                    f"{place}: an object has {names.count(column)} values of {column!r}; expected "
                    "one"
                )
        return dict(pairs)

    return checked


def _parquet_objects(file: DataFile, wanted: Sequence[str]) -> Objects:
    with file.open() as content:
        table = parquet.ParquetFile(content, buffer_size=PARQUET_READ_BYTES)
        require_columns(wanted, table.schema_arrow.names, file.name)
        batches = table.iter_batches(ROWS_PER_BATCH, columns=[*dict.fromkeys(wanted)] or None)
        yield from _table_objects(batches, wanted, file.name)


def _arrow_objects(file: DataFile, wanted: Sequence[str]) -> Objects:
    """Reads a stream of Arrow, which ``save_to_disk`` of Hugging Face datasets writes, or an Arrow
    file.
    """
    with file.open() as content:
        is_file = content.read(len(ARROW_FILE)) == ARROW_FILE
        content.seek(0)
        table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(content)
        require_columns(wanted, table.schema.names, file.name)
        batches = map(table.get_batch, range(table.num_record_batches)) if is_file else table
        yield from _table_objects(batches, wanted, file.name)


def _table_objects(batches: Iterable[pa.RecordBatch], wanted: Sequence[str], name: str) -> Objects:
    first_row = 1
    for whole in batches:
        table = pa.Table.from_batches([whole])
        table = table.select([*dict.fromkeys(wanted)]) if wanted else table
        for batch in table.to_batches(ROWS_PER_BATCH):
            yield from _mappings(batch, name, first_row)
            first_row += len(batch)


def _mappings(batch: pa.RecordBatch, name: str, first_row: int) -> list[dict[str, Any]]:
    """The rows of ``batch``.

    Raises WorkloadError for a value that should be UTF-8 as the file says, but is not.
    """
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except UnicodeDecodeError:
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            for row, value in enumerate(values, start=first_row):
                try:
                    value.as_py()
                except UnicodeDecodeError as error:
                    problem = f"the column {column!r} has {error.object[:20]!r}, which is not UTF-8"
                    raise WorkloadError(f"{name}, row {row}: {problem}; expected text") from error
        raise
    return rows


def hub_objects(dataset: Dataset, path: str, split: str, wanted: Sequence[str]) -> Objects:
    """Streams the split, with the columns ``wanted``, or without any with all that need no decoder:
    only the files that are needed are read, and nothing is stored.

    A slice (train[:10%]) is cut from a copy of the whole dataset, which the job's volume must hold.
    """
    # slow to import; only the Hub needs it
    from datasets import ClassLabel, load_dataset  # noqa: PLC0415
    from datasets.features.features import require_decoding  # noqa: PLC0415

    is_slice = "[" in split
    try:
        rows = load_dataset(
            path, dataset.name, split=split, revision=dataset.revision, streaming=not is_slice
        )
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as error:  # not found, not reachable, no such split, a Hub script
        raise WorkloadError(
            f"the dataset {path!r} can't be loaded from the Hugging Face Hub: {error}; expected an "
            "id such as nyu-mll/glue with its name and split, an S3 prefix, or a folder"
        ) from error
    if not wanted and rows.features:  # a picture's or a sound's decoder may not be installed
        plain = [name for name, kind in rows.features.items() if not require_decoding(kind)]
        rows = rows.select_columns(plain)
    has_classes = isinstance((rows.features or {}).get(dataset.label_column), ClassLabel)
    if rows.column_names and wanted:  # others may need a decoder that is not installed
        require_columns(wanted, rows.column_names, path)
        rows = rows.select_columns([*dict.fromkeys(wanted)])
    for batch in rows.iter(ROWS_PER_BATCH):
        if has_classes and dataset.label_column in wanted:
            labels = batch[dataset.label_column]
            batch[dataset.label_column] = [
                None if label is None or label < 0 else label for label in labels
            ]
        yield from (
            dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)
        )
