"""Data that the page holds for download: each plot's as CSV, everything as JSON."""

import base64
import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traindyno.core.documents.problems import visible
from traindyno.report.markup import Markup, element


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotData:
    """The data of a plot, as a table. ``name`` is the file's name without its extension."""

    name: str
    header: Sequence[str]
    rows: Iterable[Sequence[object]]


def download(content: bytes, name: str, kind: str, label: str, *, class_: str = "download") -> Markup:
    encoded = base64.b64encode(content).decode()
    return element("a", label, download=name, href=f"data:{kind};base64,{encoded}", class_=class_)


def download_csv(data: PlotData, label: str = "CSV") -> Markup:
    content = csv_text(data.header, data.rows).encode()
    return download(content, f"{data.name}.csv", "text/csv;charset=utf-8", label, class_="csv")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _cell(value: object) -> object:
    """A spreadsheet treats text with one of these first characters as a formula; six digits are enough for a plot."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
