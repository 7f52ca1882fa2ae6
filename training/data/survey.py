"""A survey of the rows of local data, for the suite's defaults.

It covers columns, labels, lengths and the number of rows.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import DatasetFormat
from training.data.checked_rows import header_hint, require_columns
from training.data.conversations import conversations
from training.data.files import files_format, find_files
from training.data.known_forms import chat_form, is_chat, known_form
from training.data.labels import Labelled, LabelValues, label_cautions, label_of, number_labels
from training.data.rows import SHOWN_FILES, file_rows, objects
from training.errors import WorkloadError

FIRST_ROWS = 200
#: A column is of texts if its values have so many words on average.
WORDS_OF_TEXT = 2.0
#: Values of a label repeat: on average each comes at least so often in the first rows.
REPEATS_OF_LABEL = 2.0
LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a file's first rows."""

    #: All columns.
    names: tuple[str, ...]
    #: The columns that can be the text.
    texts: tuple[str, ...]
    #: The columns with any text that is neither a number nor a chat.
    worded: tuple[str, ...]
    #: The sentence about a known form of fine-tuning data.
    form: str | None
    #: The columns by which the rows are conversations.
    chat: tuple[str, ...] | None
    #: The columns that can be the label.
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The lengths and labels of a split."""

    #: How many rows have a text of so many bytes in UTF-8.
    rows_by_bytes: Mapping[int, int]
    #: The first row of each label.
    labels: Sequence[Labelled]
    #: What is likely a mistake in the labels.
    cautions: tuple[str, ...]

    @property
    def rows(self) -> int:
        return sum(self.rows_by_bytes.values())

    @property
    def bytes(self) -> int:
        return sum(size * count for size, count in self.rows_by_bytes.items())

    def rows_above(self, size: int) -> int:
        return sum(count for length, count in self.rows_by_bytes.items() if length > size)


def find_columns(dataset: Dataset, root: Path) -> Columns | None:
    """The columns of the dataset; None for plain text, which has none, and without rows.

    Raises WorkloadError if a file can't be read.
    """
    files = find_files(dataset, root, dataset.split)
    kind = files_format(dataset, files)
    if kind is DatasetFormat.TEXT:
        return None
    first_rows = itertools.islice(objects(files[0], kind, ()), FIRST_ROWS)
    rows: list[Mapping[str, Any]] = [row for row in first_rows if isinstance(row, dict)]
    names = tuple(dict.fromkeys(name for row in rows for name in row if isinstance(name, str)))
    if not names:
        return None
    if header_hint(names) and kind is DatasetFormat.CSV:
        require_columns([dataset.text_column], names, files[0].name)
    values = {name: _texts([row.get(name) for row in rows]) for name in names}
    texts = [name for name in names if _words(values[name]) >= WORDS_OF_TEXT]
    labels = [
        name for name in names if name not in texts and _repeats([row.get(name) for row in rows])
    ]
    worded = [name for name in names if any(map(LETTER.search, values[name]))]
    return Columns(
        names=names,
        texts=tuple(texts),
        worded=tuple(worded),
        form=known_form(names),
        chat=chat_form(names),
        labels=tuple(labels),
    )


def require_texts(dataset: Dataset, root: Path) -> None:
    """Reads each split up to its first text. Raises WorkloadError for one that has none."""
    for split in filter(None, (dataset.split, dataset.evaluation_split)):
        files = find_files(dataset, root, split)
        batches = file_rows(dataset, files, with_labels=False)
        if not any(text.strip() for rows in batches for text in rows.texts):
            names = ", ".join(file.name for file in files[:SHOWN_FILES])
            raise WorkloadError(f"{names} has no text; expected at least one row with text")


def survey(dataset: Dataset, root: Path, *, with_labels: bool) -> Survey:
    """Reads the whole split, as the job will. Raises WorkloadError, as the job would."""
    rows_by_bytes = Counter[int]()
    labels = LabelValues()
    for rows in file_rows(
        dataset, find_files(dataset, root, dataset.split), with_labels=with_labels
    ):
        rows_by_bytes.update(len(text.encode()) for text in rows.texts)
        for place in range(len(rows.texts)):
            label = label_of(rows, place)
            if label is not None:
                labels.code(label)
    number_labels(labels.firsts, None)  # refuses one label in two forms
    cautions = tuple(label_cautions(labels.firsts, dataset.label_column))
    return Survey(rows_by_bytes=rows_by_bytes, labels=labels.firsts, cautions=cautions)


def survey_chat(dataset: Dataset, root: Path) -> Survey:
    """Surveys conversations, each of which counts with all of its texts."""
    rows_by_bytes = Counter(
        sum(len(text.encode(errors="replace")) for text in chat.texts)
        for chat in conversations(dataset, root, dataset.split)
    )
    return Survey(rows_by_bytes=rows_by_bytes, labels=(), cautions=())


def label_problem(surveyed: Survey, label_count: int) -> str | None:
    """Why the job would refuse the labels."""
    try:
        numbers = number_labels(surveyed.labels, label_count)
        for label in surveyed.labels:
            numbers.number(label)
    except WorkloadError as error:
        return str(error)
    return None


def _texts(values: list[Any]) -> list[str]:
    """The texts of a column, also those in lists; none if the column has chats."""
    listed = itertools.chain.from_iterable(
        value if isinstance(value, list) else [value] for value in values
    )
    texts = [value for value in listed if isinstance(value, str)]
    return [] if texts and all(map(is_chat, texts)) else texts


def _words(texts: list[str]) -> float:
    """Where no value is a text: 0."""
    return sum(len(text.split()) for text in texts) / len(texts) if texts else 0.0


def _repeats(values: list[Any]) -> bool:
    filled = [
        str(value)
        for value in values
        if isinstance(value, str | int | float) and str(value).strip()
    ]
    return len(filled) >= REPEATS_OF_LABEL * len(set(filled)) > 0
