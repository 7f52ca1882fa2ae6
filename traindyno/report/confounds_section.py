"""What differs between compared cells besides the setting under test, and the control cells to add."""

import json

from traindyno.core.verdict.confounds import Confound
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, draw_table


def draw_confounds(report: Report) -> Markup | None:
    if not report.verdict.confounds:
        return None
    return element(
        "section",
        element("h2", "Confounds"),
        *(_draw(report.verdict, confound) for confound in report.verdict.confounds),
        id="confounds",
    )


def _draw(verdict: Verdict, confound: Confound) -> Markup:
    first, second = verdict.row(confound.first_cell_id).label, verdict.row(confound.second_cell_id).label
    table = draw_table(
        [Column(heading="Differs in"), Column(heading=first), Column(heading=second)],
        [[difference.name, difference.first, difference.second] for difference in confound.differences],
        caption="Each of these differences is a possible cause of a difference in results.",
    )
    controls = [
        element(
            "li",
            f"{control.isolates} alone: ",
            f"in this suite as {verdict.row(control.cell_id).label}"
            if control.cell_id
            else join("add to include: ", element("code", json.dumps(dict(control.include), ensure_ascii=False))),
        )
        for control in confound.controls
    ]
    return join(table, element("ul", *controls) if controls else None)
