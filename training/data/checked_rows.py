"""Rows of a dataset, checked when they are read.

A row has one column of each wanted name, a text that is one, and a label that can be a class.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.run.workload import Dataset
from training.data.known_forms import WAY, is_chat
from training.errors import WorkloadError

SHOWN_CHARACTERS = 40
COLUMN_FIELDS = ("dataset.text_column", "dataset.label_column")
OTHER_DELIMITERS = ";\t|,"
MOST_COLUMNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some rows of a file that follow each other."""

    texts: list[str]
    labels: list[object] | None
    file: str
    #: The number, from 1, of the first of these rows in the file, which messages name.
    first_row: int = 1
    #: Whether the one text is a further piece of the file's text.
    continues: bool = False
    #: Whether further pieces follow it.
    goes_on: bool = False


def wanted_columns(dataset: Dataset, *, with_labels: bool) -> list[str]:
    return [dataset.text_column, *([dataset.label_column] if with_labels else [])]


def require_columns(wanted: Sequence[str], columns: Sequence[str], name: str) -> None:
    cut = [column[:SHOWN_CHARACTERS] for column in columns]
    shown = [text if text == text.strip() else repr(text) for text in cut]
    listed = (
        "its columns are "
        f"{', '.join(shown[:MOST_COLUMNS]) or 'none'}{', …' if shown[MOST_COLUMNS:] else ''}"
    )
    missing = [column for column in wanted if column not in columns]
    if missing:
        fields = " and ".join(COLUMN_FIELDS[: len(wanted)])
        hint = header_hint(columns) or f"{fields} {'names it' if len(wanted) == 1 else 'name them'}"
        raise WorkloadError(
            f"{name} has no column {', '.join(map(repr, missing))}; {listed}; {hint}"
        )
    for column in wanted:
        if columns.count(column) > 1:
            raise WorkloadError(
                f"{name} has {columns.count(column)} columns {column!r}; {listed}; expected one"
            )


def header_hint(columns: Sequence[str]) -> str | None:
    """What is wrong with the header of a CSV file that is none; None if it may be one."""
    first = columns[0].strip() if columns else ""
    read = (
        "a .csv file is read with commas between its columns, or with the semicolons or tabs that "
        "divide all its rows alike; a .tsv file with tabs"
    )
    if first.casefold().startswith("sep="):
        return f"delete its first line, which only spreadsheets read; {read}"
    if first.startswith(("{", "[{")):
        return "it is JSON: name it .jsonl"
    if first.startswith("<"):
        return "it is HTML or XML, such as the answer of a server: expected a table as .csv"
    return read if len(columns) == 1 and any(mark in first for mark in OTHER_DELIMITERS) else None


def check_texts(texts: Sequence[object], name: str, first_row: int) -> list[str]:
    accepted = [text for text in texts if isinstance(text, str)]
    if len(accepted) < len(texts):
        numbered = enumerate(texts, start=first_row)
        row, text = next((row, text) for row, text in numbered if not isinstance(text, str))
        hint = "; join a list to one text first" if isinstance(text, list) else ""
        hint = f", not the turns of a chat; {WAY}" if is_chat(text) else hint
        raise WorkloadError(
            f"{name}, row {row}: the text is {described(text)}; expected text{hint}"
        )
    if accepted and all(map(is_chat, accepted)):
        raise WorkloadError(
            f"{name}, row {first_row}: the text is {described(accepted[0])}, the turns of a chat "
            f"as JSON; {WAY}"
        )
    for row, text in enumerate(accepted, start=first_row):
        refuse_half_characters(text, f"{name}, row {row}")
    return accepted


def refuse_half_characters(text: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        lone = ascii(text[error.start : error.end])
        raise WorkloadError(
            f"{place}: the text has {lone} at character {error.start + 1}, a half of a surrogate "
            "pair, which is no character; expected text in Unicode"
        ) from error


def check_labels(labels: Sequence[object], name: str, first_row: int) -> None:
    for row, label in enumerate(labels, start=first_row):
        if label is None or (isinstance(label, str) and not label.strip()):
            raise WorkloadError(
                f"{name}, row {row}: the label is missing; expected a label in every row"
            )
        if not isinstance(label, (str, int, float)) or (
            isinstance(label, float) and not math.isfinite(label)
        ):
            raise WorkloadError(
                f"{name}, row {row}: the label is {described(label)}; expected one class, as a "
                "whole number or a text"
            )


def described(value: object) -> str:
    return (
        "missing" if value is None else f"{type(value).__name__} {str(value)[:SHOWN_CHARACTERS]!r}"
    )
