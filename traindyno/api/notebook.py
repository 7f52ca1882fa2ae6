"""What a notebook shows: the progress of an execution, drawn again in place, and its report."""

import importlib
import os
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from traindyno.api.execution_state import State
from traindyno.api.progress import Display, PlainDisplay
from traindyno.api.progress_text import state_line, state_rows
from traindyno.api.reports import write_report
from traindyno.core.documents.problems import shown, visible
from traindyno.core.errors import TraindynoError
from traindyno.core.verdict.recommendation_text import recommendation_sentences
from traindyno.core.verdict.report_data import Report
from traindyno.report.html import draw_sections, render_section

PAGE_HEIGHT_PIXELS, FIGURE_HEIGHT_PIXELS = 800, 420
Say = Callable[[str], None]


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
        self._lines, self._state = lines, state

    def __repr__(self) -> str:
        return "\n".join([*self._lines, *([state_line(self._state)] if self._state else [])])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{_escaped(line)}</div>" for line in self._lines)
        rows = state_rows(self._state) if self._state else ()
        cells = "".join(f"<tr><th>{_escaped(name)}</th><td>{_escaped(text)}</td></tr>" for name, text in rows)
        return f"{lines}<table>{cells}</table>"


class NotebookDisplay(Display):
    """``draw`` replaces what the cell's output shows."""

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
        self.html, self._height_pixels = html, height_pixels

    def _repr_html_(self) -> str:
        page = escape(self.html, quote=True)
        return f'<iframe sandbox srcdoc="{page}" width="100%" height="{self._height_pixels}"></iframe>'


class ReportPage(Figure):
    """An execution's report: ``data`` are its values, ``html`` is the page."""

    def __init__(self, data: Report, html: str) -> None:
        super().__init__(html, PAGE_HEIGHT_PIXELS)
        self.data = data

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the sections that ``figure`` shows."""
        return tuple(draw_sections(self.data))

    def figure(self, name: str) -> Figure:
        """One section of the page. Raises FigureMissing."""
        sections = draw_sections(self.data)
        if name not in sections:
            raise FigureMissing(f"got {shown(name)} as a figure, expected one of {', '.join(sections)}")
        return Figure(render_section(self.data, sections[name]), FIGURE_HEIGHT_PIXELS)

    def save(self, folder: str | os.PathLike[str] = "reports") -> Path:
        """Writes the page to a file of the execution's name, and returns its path. Raises ReportUnwritable."""
        return write_report(Path(folder), self.data.execution_id, self.html.encode())

    def __repr__(self) -> str:
        return visible("\n".join(recommendation_sentences(self.data.verdict)))


def _escaped(text: str) -> str:
    return escape(visible(text))
