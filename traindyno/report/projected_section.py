"""A section with what was projected or estimated beside what came of it."""

from traindyno.core.costs.projected_actual import HEADINGS, ProjectedActual
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, columns, draw_table, element


def draw_projected(
    report: Report, part: str, title: str, caption: str, word: str = "projected"
) -> Markup | None:
    """``part``: of the report, and the anchor of the section. None where nothing was projected."""
    found = report.part(part, ProjectedActual)
    if not found:
        return None
    rows = [(*filter(None, [each.cell]), *each.texts()) for each in found]
    first, *others = (each.replace("projected", word) for each in HEADINGS)
    of_cell = ["Cell"] if found[0].cell else []
    headings = columns(*of_cell, first.capitalize(), *(f"# {name.capitalize()}" for name in others))
    return element(
        "section", element("h2", title), draw_table(headings, rows, caption=caption), id=part
    )
