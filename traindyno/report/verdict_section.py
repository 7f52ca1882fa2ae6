"""The verdict: headline, figures, what would change it, and cautions."""

from collections.abc import Sequence

from traindyno.core.verdict.conditions import Confound
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_goal, describe_verdict
from traindyno.report.charts.cell_charts import draw_verdict_chart
from traindyno.report.markup import Column, Markup, draw_table, element, join

MOST_ITEMS = 6
CONFIDENT = (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE, Finding.ONLY_ONE)


def draw_verdict(verdict: Verdict) -> Markup:
    text = describe_verdict(verdict)
    tone = "confident" if verdict.finding in CONFIDENT else "open"
    return element(
        "section",
        element("p", f"Goal: {describe_goal(verdict.goal)}", class_="goal"),
        element("h2", text.headline),
        element("p", text.work, class_="support"),
        element("p", text.certainty, class_="support"),
        draw_verdict_chart(verdict),
        _list("Statistics", text.support),
        _list("What would change the answer", text.changes),
        _list("Cautions", text.cautions),
        id="verdict",
        class_=f"verdict {tone}",
    )


def _list(heading: str, items: Sequence[str]) -> Markup | None:
    if not items:
        return None
    first = items[:MOST_ITEMS]
    rest = items[MOST_ITEMS:]
    return join(
        element("h3", heading),
        element("ul", *(element("li", sentence) for sentence in first)),
        element(
            "details",
            element("summary", f"{len(rest)} more"),
            element("ul", *(element("li", sentence) for sentence in rest)),
        )
        if rest
        else None,
    )


def draw_confounds(report: Report) -> Markup | None:
    if not report.verdict.likeness.confounds:
        return None
    return element(
        "section",
        element("h2", "Confounds"),
        *(_draw(report.verdict, confound) for confound in report.verdict.likeness.confounds),
        id="confounds",
    )


def _draw(verdict: Verdict, confound: Confound) -> Markup:
    first = verdict.row(confound.first_cell_id).label
    second = verdict.row(confound.second_cell_id).label
    return draw_table(
        [Column(heading="Differs in"), Column(heading=first), Column(heading=second)],
        [
            [difference.name, difference.first, difference.second]
            for difference in confound.differences
        ],
        caption="Each of these differences is a possible cause of a difference in results.",
    )
