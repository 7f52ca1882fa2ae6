"""Frozen software of the suite: software that AWS no longer develops, the cells that use it, and its replacement."""

from traindyno.core.suite.frozen_software import find_frozen
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element
from traindyno.report.table import Column, draw_table

COLUMNS = [Column(heading=name) for name in ("Software", "State", "Use instead", "Cells")]


def draw_frozen(report: Report) -> Markup | None:
    found = find_frozen(report.cells, report.suite.workload)
    if not found:
        return None
    rows: list[list[str | None]] = [
        [use.software.name, use.software.state, use.software.replaced_by, f"{len(use.cells)} of {len(report.cells)}"]
        for use in found
    ]
    return element(
        "section",
        element("h2", "Frozen software"),
        draw_table(COLUMNS, rows, caption="AWS no longer develops this software. The results describe its last state."),
        id="frozen",
    )
