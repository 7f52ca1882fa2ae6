"""Report data to one self-contained HTML file: no external resource, no script, all values
escaped.
"""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element, join
from traindyno.report.verdict_section import draw_verdict
from traindyno.slices.report_parts import SECTIONS

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render(report: Report) -> str:
    present = draw_sections(report)
    body = element(
        "body",
        _header(report, list(present)),
        element("main", draw_verdict(report.verdict), *present.values()),
        element("footer", element("p", f"Traindyno report of {report.execution_id}")),
        class_="simulated" if report.is_simulated else None,
    )
    return _page(report, body)


def render_section(report: Report, section: Markup) -> str:
    """A page of one section, with the mark of simulated results."""
    class_ = "simulated" if report.is_simulated else None
    return _page(report, element("body", _badge(report), element("main", section), class_=class_))


def draw_sections(report: Report) -> dict[str, Markup]:
    """The sections below the verdict that have something to show."""
    return {
        name: section
        for name, (_, draw) in SECTIONS.items()
        if (section := draw(report)) is not None
    }


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


def _header(report: Report, names: list[str]) -> Markup:
    written = datetime.fromtimestamp(report.created_at, UTC).strftime("%-d %B %Y, %H:%M UTC")
    links = (element("a", SECTIONS[name][0], href=f"#{name}") for name in names)
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
