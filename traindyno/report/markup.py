"""HTML and SVG elements whose text is escaped unless it is markup already: log lines can hold
anything.

Characters that a browser obeys, such as those that reverse the text after them, become visible
escapes.
"""

import base64
import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

from traindyno.core.costs.quantity_text import UNKNOWN, interval_text
from traindyno.core.documents.places import spreadsheet_text
from traindyno.core.documents.problems import visible
from traindyno.figures.estimates import Estimate

EMPTY_ELEMENTS = frozenset(
    {"meta", "br", "col", "rect", "line", "path", "circle", "polygon", "input", "wbr"}
)
MOST_ROWS = 1000


class Markup(str):
    """Text that is already escaped."""

    __slots__ = ()


def element(name: str, /, *children: str | int | None, **attributes: str | float | None) -> Markup:
    """An element of the page.

    In names of attributes, ``class_`` and ``for_`` lose their underscore, others inside a name
    become hyphens. An attribute of None is left out.
    """
    opening = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in EMPTY_ELEMENTS and not children:
        return Markup(f"<{name}{opening}/>")
    return Markup(f"<{name}{opening}>{join(*children)}</{name}>")


def join(*children: str | int | None) -> Markup:
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(child: str | int) -> str:
    return child if isinstance(child, Markup) else escape(visible(str(child)), quote=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    heading: str
    is_number: bool = False
    explanation: str | None = None


def columns(*headings: str, explained: Mapping[str, str] = MappingProxyType({})) -> list[Column]:
    """The table; a heading that begins with # stands above numbers."""
    names = [heading.removeprefix("# ") for heading in headings]
    return [
        Column(heading=name, is_number=name != heading, explanation=explained.get(name))
        for name, heading in zip(names, headings, strict=True)
    ]


def draw_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | None]],
    *,
    caption: str,
    emphasized: Sequence[int] = (),
    footer: Sequence[str | None] = (),
) -> Markup:
    """The first cell of a row is its heading; ``emphasized`` are indices of rows."""
    head = element(
        "tr",
        *(
            element(
                "th", column.heading, class_=_class(column), scope="col", title=column.explanation
            )
            for column in columns
        ),
    )
    body = [
        element("tr", *_cells(columns, row), class_="emphasized" if index in emphasized else None)
        for index, row in enumerate(rows[:MOST_ROWS])
    ]
    left_out = (
        f" The first {MOST_ROWS:,} of {len(rows):,}; the data below contains all rows."
        if len(rows) > MOST_ROWS
        else ""
    )
    return element(
        "div",
        element(
            "table",
            element("caption", element("span", caption + left_out)),
            element("thead", head),
            element("tbody", *body),
            element("tfoot", element("tr", *_cells(columns, footer))) if footer else None,
        ),
        class_="scroll",
        tabindex=0,
    )


def _cells(columns: Sequence[Column], row: Sequence[str | None]) -> list[Markup]:
    first, *rest = row
    return [
        element("th", first if isinstance(first, Markup) else breakable(first or ""), scope="row"),
        *(
            element("td", value, class_=_class(column))
            for column, value in zip(columns[1:], rest, strict=True)
        ),
    ]


def _class(column: Column) -> str | None:
    return "number" if column.is_number else None


def breakable(name: str) -> Markup:
    """Allows line breaks after the separators in a cell's label or a job's name."""
    return Markup(re.sub(r"([_=./])", r"\1<wbr/>", _text(name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotData:
    """The data of a plot, as a table. ``name`` is the file's name without its extension."""

    name: str
    header: Sequence[str]
    rows: Iterable[Sequence[object]]


def download(
    content: bytes, name: str, kind: str, label: str, *, class_: str = "download"
) -> Markup:
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
    """Six digits are enough for a plot."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return spreadsheet_text(value) if isinstance(value, str) else value


def estimate_cell(estimate: Estimate | None, value_text: Callable[[float], str]) -> Markup:
    if estimate is None:
        return element("span", "–", class_="absent", title="not measured")
    interval = estimate.interval
    spread = (
        interval_text(interval.low, interval.high, value_text)
        if interval
        else f"interval {UNKNOWN}"
    )
    return join(value_text(estimate.mean), element("small", spread))
