"""What the library gives a notebook to show: a live display, the report as a page, and results as a
table.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, overload

from traindyno.api.execution_state import State
from traindyno.api.progress import Display, PlainDisplay, state_line, state_rows
from traindyno.api.reports import write_report
from traindyno.core.costs.summarise import RUN_COLUMNS, run_columns
from traindyno.core.documents.problems import shown, visible
from traindyno.core.errors import TraindynoError
from traindyno.core.suite.suite_file import cell_values
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.report.feature import ReportFeature
from traindyno.report.html import draw_sections, render_section

SHOWN = ("cell_label", "trial", "outcome", "samples_per_second", "job_seconds", "message")
PAGE_HEIGHT_PIXELS = 800
FIGURE_HEIGHT_PIXELS = 420
Say = Callable[[str], None]


class PandasMissing(TraindynoError):
    """A frame was asked for, and pandas is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One run in the table of a notebook.

    ``summary`` has the columns of a table of runs; ``settings`` has the values of the settings that
    vary.
    """

    summary: SimpleNamespace
    settings: Mapping[str, Any]

    def flat(self) -> dict[str, Any]:
        """One mapping of both, without enums: a row of a table."""
        measured = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in vars(self.summary).items()
        }
        return {**measured, **self.settings}


class Results(Sequence[ResultRow]):
    """The rows of the runs, by cell and trial. A notebook shows them as a table.

    ``columns``: the names of all columns, which an execution without runs has too.
    """

    def __init__(self, rows: Sequence[ResultRow], columns: Sequence[str]) -> None:
        self._rows = tuple(rows)
        self._columns = tuple(columns)

    @overload
    def __getitem__(self, index: int) -> ResultRow: ...

    @overload
    def __getitem__(self, index: slice) -> "Results": ...

    def __getitem__(self, index: int | slice) -> "ResultRow | Results":
        if isinstance(index, slice):
            return Results(self._rows[index], self._columns)
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def frame(self) -> Any:
        """A pandas data frame with a row for each run. Raises PandasMissing."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise PandasMissing(
                "a frame needs pandas, which is not installed; the rows are a sequence"
            ) from error
        return pandas.DataFrame([row.flat() for row in self._rows], columns=self._columns)

    def __repr__(self) -> str:
        return "\n".join(" ".join(cells) for cells in self._shown())

    def _repr_html_(self) -> str:
        heading, *rows = [
            "".join(f"<td>{escape(text)}</td>" for text in cells) for cells in self._shown()
        ]
        lines = "".join(f"<tr>{row}</tr>" for row in rows)
        head = f"<thead><tr>{heading.replace('td>', 'th>')}</tr></thead>"
        return f"<table>{head}<tbody>{lines}</tbody></table>"

    def _shown(self) -> Iterator[list[str]]:
        yield [name.replace("_", " ") for name in SHOWN]
        for row in self._rows:
            values = row.flat()
            yield [_text(values[name]) for name in SHOWN]


def results_of(report: Report) -> Results:
    """The table with the settings that vary between cells, the ones with the most values first."""
    points = [cell_values(cell) for cell in report.cells]
    names = dict.fromkeys(name for point in points for name in point)
    different = {name: len({repr(point.get(name)) for point in points}) for name in names}
    varying = sorted(
        (name for name in names if different[name] > 1), key=lambda name: -different[name]
    )
    rows = []
    for result in report.results:
        point = cell_values(result.run.cell)
        rows.append(
            ResultRow(
                summary=SimpleNamespace(**run_columns(result)),
                settings={name: point.get(name) for name in varying},
            )
        )
    return Results(rows, [*RUN_COLUMNS, *varying])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))


def say_on_output(line: str) -> None:
    sys.stdout.write(f"{visible(line)}\n")


def display_here(say: Say) -> Display:
    """A live display in a notebook; elsewhere lines by ``say``."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if not hasattr(shell, "kernel"):
        return PlainDisplay(say)
    shown = importlib.import_module("IPython.display").display(Progress([], None), display_id=True)
    return NotebookDisplay(shown.update)


class Progress:
    """The lines so far, and the state below them."""

    def __init__(self, lines: list[str], state: State | None) -> None:
        self._lines = lines
        self._state = state

    def __repr__(self) -> str:
        return "\n".join([*self._lines, *([state_line(self._state)] if self._state else [])])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{_escaped(line)}</div>" for line in self._lines)
        rows = state_rows(self._state) if self._state else ()
        cells = "".join(
            f"<tr><th>{_escaped(name)}</th><td>{_escaped(text)}</td></tr>" for name, text in rows
        )
        return f"{lines}<table>{cells}</table>"


class NotebookDisplay(Display):
    """Progress in a notebook's cell. ``draw`` replaces what its output shows."""

    def __init__(self, draw: Callable[[Progress], Any]) -> None:
        super().__init__(self._keep)
        self._draw = draw
        self._lines: list[str] = []

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._draw(Progress([*self._lines], None))

    def show(self, state: State) -> None:
        self._draw(Progress([*self._lines], state if state.execution.is_running else None))


class FigureMissing(TraindynoError):
    """The report has no figure of this name."""


class Figure:
    """A page of HTML. A notebook shows it in a frame of its own, in which no script runs."""

    def __init__(self, html: str, height_pixels: int) -> None:
        self.html = html
        self._height_pixels = height_pixels

    def _repr_html_(self) -> str:
        page = escape(self.html, quote=True)
        return (
            f'<iframe sandbox srcdoc="{page}" width="100%" height="{self._height_pixels}"></iframe>'
        )


class ReportPage(Figure):
    """An execution's report: ``data`` are its values, ``html`` is the page."""

    def __init__(self, data: Report, html: str, features: Sequence[ReportFeature]) -> None:
        super().__init__(html, PAGE_HEIGHT_PIXELS)
        self.data = data
        self._features = features

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the sections that ``figure`` shows."""
        return tuple(draw_sections(self.data, self._features))

    def figure(self, name: str) -> Figure:
        """One section of the page. Raises FigureMissing."""
        sections = draw_sections(self.data, self._features)
        if name not in sections:
            raise FigureMissing(
                f"got {shown(name)} as a figure, expected one of {', '.join(sections)}"
            )
        return Figure(render_section(self.data, sections[name]), FIGURE_HEIGHT_PIXELS)

    def save(self, folder: str | os.PathLike[str] = "reports") -> Path:
        """Writes the page to a file of the execution's name, and returns its path.

        Raises ReportUnwritable.
        """
        return write_report(Path(folder), self.data.execution_id, self.html.encode())

    def __repr__(self) -> str:
        return visible("\n".join(describe_verdict(self.data.verdict).lead))


def _escaped(text: str) -> str:
    return escape(visible(text))
