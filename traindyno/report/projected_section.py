"""A section with what was projected or estimated beside what came of it."""

from traindyno.core.costs.projected_actual import HEADINGS, ProjectedActual
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, columns, draw_table, element


def draw_projected(
    report: Report, part: str, title: str, caption: str, word: str = "projected"
) -> Markup | None:
    """Section that compares projected with actual values. None where nothing was projected.

    Args:
        part: Part of the report, and the anchor of the section.
        title: Title of the section.
        caption: Caption of its table.
        word: Word for the compared value.
    """
    comparisons = report.part(part, ProjectedActual)
    if not comparisons:
        return None
    rows = [(*filter(None, [comparison.cell]), *comparison.texts()) for comparison in comparisons]
    first, *others = (heading.replace("projected", word) for heading in HEADINGS)
    of_cell = ["Cell"] if comparisons[0].cell else []
    headings = columns(*of_cell, first.capitalize(), *(f"# {name.capitalize()}" for name in others))
    return element(
        "section", element("h2", title), draw_table(headings, rows, caption=caption), id=part
    )
