"""The verdict: headline, figures, what would change it, and cautions."""

import json
from collections.abc import Sequence

from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.verdict.confounds import Confound
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.recommendation_text import recommendation_sentences
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_goal, describe_verdict, metric_text, saving_interval_text
from traindyno.report.charts.verdict_chart import draw_verdict_chart
from traindyno.report.markup import Column, Markup, draw_table, element, join

MOST_ITEMS = 6
CONFIDENT = (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE, Finding.ONLY_ONE)


def draw_verdict(verdict: Verdict) -> Markup:
    text = describe_verdict(verdict)
    headline, *sentences = recommendation_sentences(verdict)
    tone = "confident" if verdict.finding in CONFIDENT else "open"
    return element(
        "section",
        element("p", f"Goal: {describe_goal(verdict.goal)}", class_="goal"),
        element("h2", headline),
        *(element("p", sentence, class_="support") for sentence in sentences),
        draw_verdict_chart(verdict),
        element("dl", *_figures(verdict), class_="figures"),
        _list("Statistics", text.support),
        _list("What would change the answer", text.changes),
        _list("Cautions", text.cautions),
        id="verdict",
        class_=f"verdict {tone}",
    )


def _figures(verdict: Verdict) -> list[Markup]:
    """The recommended cell, corrected for its selection as the best."""
    row = verdict.expected
    if row is None:
        return []
    is_whole = verdict.goal.target is None
    work = "Whole workload" if is_whole else "Until the target"
    seconds, usd = (row.seconds, row.usd) if is_whole else (row.quality.seconds, row.quality.usd)
    figures: list[tuple[str, str, str | None]] = [
        (f"{work}, time", seconds_text(seconds.mean if seconds else None), None)
    ]
    if verdict.metric is Metric.INSTANCE_HOURS:
        found = verdict.estimate(verdict.metric)
        figures.append((work, metric_text(verdict.metric, found.mean if found else None), None))
    else:
        figures.append((f"{work}, cost", usd_text(usd.mean if usd else None), None))
    rate = row.samples_per_second
    figures.append(("Samples per second", number_text(rate.mean if rate else None), "all devices, waiting included"))
    if verdict.runner_up:
        comparison = verdict.runner_up.comparison
        note = saving_interval_text(comparison.interval) if comparison.interval else "interval unknown"
        figures.append(("Ahead of runner-up by", share_text(1 - comparison.ratio), note))
    figures.append(("Spent on measuring", usd_text(verdict.spent_usd), None))
    return [_figure(*figure) for figure in figures]


def _figure(name: str, value: str, note: str | None) -> Markup:
    return element("div", element("dt", name), element("dd", value, element("small", note) if note else None))


def _list(heading: str, items: Sequence[str]) -> Markup | None:
    if not items:
        return None
    first, rest = items[:MOST_ITEMS], items[MOST_ITEMS:]
    return join(
        element("h3", heading),
        element("ul", *(element("li", item) for item in first)),
        element(
            "details", element("summary", f"{len(rest)} more"), element("ul", *(element("li", item) for item in rest))
        )
        if rest
        else None,
    )


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
