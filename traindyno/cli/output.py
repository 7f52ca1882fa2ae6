"""Output: tables or one JSON document on standard output, messages on standard error.

Only this module writes to the terminal. Text is shown as it is: none of it is markup, and what a
terminal would obey is shown as an escape.
"""

import json
import os
import sys
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from traindyno.core.documents.places import markdown_text
from traindyno.core.documents.problems import visible

WIDTH_WITHOUT_TERMINAL = 160


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


class TextFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


class Terminal(Console):
    """A rich console that shows ``[bold]``, ``:smile:`` and control characters as text, in tables
    and titles too.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(
        self, text: str, *, style: Any = "", justify: Any = None, overflow: Any = None, **_: Any
    ) -> Text:
        """Rich makes a Text of every string here, before it measures and wraps it."""
        return Text(visible(text), style=style, justify=justify, overflow=overflow)


def styled(text: str, style: str) -> Text:
    return Text(visible(text), style=style)


def titled_table(title: str, *columns: str) -> Table:
    """A table with a title.

    ``columns`` are headings: numbers stand on the right below ``>heading``, and ``heading~`` may
    take many lines.
    """
    table = Table(title=title, title_justify="left", pad_edge=False)
    for column in columns:
        heading = column.removeprefix(">")
        is_number = column.startswith(">")
        overflow: Literal["fold", "ellipsis"] = "fold" if heading.endswith("~") else "ellipsis"
        table.add_column(
            heading.removesuffix("~"), justify="right" if is_number else "left", overflow=overflow
        )
    return table


def markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the table in Markdown."""
    shown = [[markdown_text(text) for text in row] for row in (heading, *rows)]
    table = [shown[0], ["---"] * len(heading), *shown[1:]]
    return [f"| {' | '.join(row)} |" for row in table]


STANDARD_OUTPUT = Terminal(
    width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_WITHOUT_TERMINAL
)
SIMULATED = styled("SIMULATED: no training job ran; these figures come from a trace", "bold red")
STANDARD_ERROR = Terminal(stderr=True, soft_wrap=True)


def tell(message: str) -> None:
    STANDARD_ERROR.print(message)


def print_text(text: str) -> None:
    """A document for another program, without the terminal's line ends."""
    sys.stdout.write(visible(text))


def print_json(document: Any) -> None:
    """All of it in printable ASCII, by the escapes of JSON."""
    sys.stdout.write(json.dumps(document, indent=2, default=_json_value) + "\n")


def _json_value(value: object) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")
