"""Report data to one self-contained HTML file: no external resource, no script, all values
escaped.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from traindyno.core.verdict.report_data import Report
from traindyno.report.cells_section import draw_batches, draw_cells
from traindyno.report.feature import ReportFeature
from traindyno.report.learning_section import draw_learning_section
from traindyno.report.markup import Markup, element, join
from traindyno.report.provenance_section import draw_provenance, draw_raw_data, draw_receipt
from traindyno.report.runs_section import draw_runs
from traindyno.report.time_section import draw_time
from traindyno.report.verdict_section import draw_confounds, draw_verdict

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# The name in the list of sections, and what draws it; None where it has nothing to show.
Section = tuple[str, Callable[[Report], Markup | None]]
SECTIONS: Mapping[str, Section] = {
    "cells": ("Cells", lambda report: draw_cells(report.verdict)),
    "batches": ("Batches", draw_batches),
    "loss": ("Loss and quality", draw_learning_section),
    "time": ("Time", draw_time),
    "confounds": ("Confounds", draw_confounds),
    "runs": ("Runs", draw_runs),
    "receipt": ("Receipt", draw_receipt),
    "provenance": ("Provenance", draw_provenance),
    "data": ("Data", draw_raw_data),
}


def render(report: Report, features: Sequence[ReportFeature]) -> str:
    sections = _sections(features)
    present = _draw(report, sections)
    body = element(
        "body",
        _header(report, {name: sections[name][0] for name in present}),
        element("main", draw_verdict(report.verdict), *present.values()),
        element("footer", element("p", f"Traindyno report of {report.execution_id}")),
        class_="simulated" if report.is_simulated else None,
    )
    return _page(report, body)


def render_section(report: Report, section: Markup) -> str:
    """A page of one section, with the mark of simulated results."""
    class_ = "simulated" if report.is_simulated else None
    return _page(report, element("body", _badge(report), element("main", section), class_=class_))


def draw_sections(report: Report, features: Sequence[ReportFeature]) -> dict[str, Markup]:
    """The sections below the verdict that have something to show."""
    return _draw(report, _sections(features))


def _sections(features: Sequence[ReportFeature]) -> Mapping[str, Section]:
    """In order: those of features before the report's own that they name."""
    sections: dict[str, Section] = {}
    for name, section in SECTIONS.items():
        sections |= {
            added.name: (added.title, added.draw) for added in features if added.before == name
        }
        sections[name] = section
    return sections


def _draw(report: Report, sections: Mapping[str, Section]) -> dict[str, Markup]:
    drawn = {name: draw(report) for name, (_, draw) in sections.items()}
    return {name: section for name, section in drawn.items() if section is not None}


def _page(report: Report, body: Markup) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{report.suite.name}: Traindyno report"),
        element("style", Markup(_style())),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _header(report: Report, titles: Mapping[str, str]) -> Markup:
    written = datetime.fromtimestamp(report.created_at, UTC).strftime("%-d %B %Y, %H:%M UTC")
    links = (element("a", title, href=f"#{name}") for name, title in titles.items())
    return element(
        "header",
        element("p", "Traindyno", class_="brand"),
        element("h1", report.suite.name, _badge(report)),
        element(
            "p",
            join(f"{len(report.cells)} cells, {len(report.results)} runs, {written}"),
            class_="hint",
        ),
        element("nav", *links, aria_label="Sections"),
    )


def _badge(report: Report) -> Markup | None:
    return (
        element("span", "Simulated results", class_="badge large") if report.is_simulated else None
    )


@cache
def _style() -> str:
    return files("traindyno.report").joinpath("style.css").read_text(encoding="utf-8")
