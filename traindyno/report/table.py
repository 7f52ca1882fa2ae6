"""Tables with aligned numbers: a column declares whether it contains numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.report.markup import Markup, element, join

MOST_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    heading: str
    is_number: bool = False
    explanation: str | None = None


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
            element("th", column.heading, class_=_class(column), scope="col", title=column.explanation)
            for column in columns
        ),
    )
    body = [
        element("tr", *_cells(columns, row), class_="emphasized" if index in emphasized else None)
        for index, row in enumerate(rows[:MOST_ROWS])
    ]
    left_out = (
        f" The first {MOST_ROWS:,} of {len(rows):,}; the data below contains all rows." if len(rows) > MOST_ROWS else ""
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
        *(element("td", value, class_=_class(column)) for column, value in zip(columns[1:], rest, strict=True)),
    ]


def _class(column: Column) -> str | None:
    return "number" if column.is_number else None


def breakable(name: str) -> Markup:
    """Allows line breaks after the separators in a cell's label or a job's name."""
    return join(*(Markup("<wbr/>") if part == "" else part for part in _parts(name)))


def _parts(name: str) -> list[str]:
    parts: list[str] = []
    for letter in name:
        parts.append(letter)
        if letter in "_=./":
            parts.append("")
    return parts
