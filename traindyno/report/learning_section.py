"""Training loss and evaluations over steps, time and cost, and whether cells with the same work learn alike."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.costs.to_target import LearningPoint, evaluation_curve, training_curve
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Quality
from traindyno.core.verdict.cautions import describe_parity
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.figure import View, draw_figure, draw_views
from traindyno.report.charts.learning_chart import Across, CellCurves, draw_learning
from traindyno.report.markup import Markup, PlotData, download_csv, element

MOST_CELLS, MOST_TRIALS = 8, 3
Curve = Callable[[RunResult], tuple[LearningPoint, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The quantity on the vertical axis."""

    name: str
    curve: Curve


def _of_quality(quality: Quality) -> Curve:
    return lambda result: evaluation_curve(result, quality)


MEASURES = (
    Measure(name="training loss", curve=training_curve),
    Measure(name="accuracy", curve=_of_quality(Quality.ACCURACY)),
    Measure(name="evaluation loss", curve=_of_quality(Quality.LOSS)),
    Measure(name="perplexity", curve=_of_quality(Quality.PERPLEXITY)),
)


def draw_learning_section(report: Report) -> Markup | None:
    views = [view for measure in MEASURES for view in _views(report, measure)]
    if not views:
        return None
    measured = sum(row.trials > 0 for row in report.verdict.rows)
    left_out = f" The best {MOST_CELLS} of {measured} cells." if measured > MOST_CELLS else ""
    return element(
        "section",
        element("h2", "Loss and quality"),
        element(
            "p",
            "Each line is a run. Time is wall clock from the creation of the job; cost is the amount billed by then."
            f"{left_out}",
            class_="hint",
        ),
        draw_views("learning", views),
        element("p", "The data of these charts:", *_downloads(report), class_="hint"),
        _parities(report.verdict),
        id="loss",
    )


def _parities(verdict: Verdict) -> Markup | None:
    """Comparisons that do not agree are first."""
    found = sorted(verdict.parities, key=lambda parity: parity.finding is ParityFinding.AGREES)
    if not found:
        return None
    agreeing = sum(parity.finding is ParityFinding.AGREES for parity in found)
    return element(
        "details",
        element("summary", f"Cells that should learn alike: {agreeing} of {len(found)} comparisons agree"),
        element("ul", *(element("li", describe_parity(verdict, parity)) for parity in found)),
        open="" if agreeing < len(found) else None,
    )


def _views(report: Report, measure: Measure) -> Iterator[View]:
    cells = _curves(report, measure)[:MOST_CELLS]
    for across in Across:
        drawn = [found for each in cells if (found := each.along(across)).curves]
        if drawn:
            title = f"{measure.name.capitalize()} over {across}"
            picture = draw_learning(drawn, across, title=title)
            yield View(name=f"{measure.name} / {across}", content=draw_figure(title, picture))


def _downloads(report: Report) -> Iterator[Markup]:
    for measure in MEASURES:
        cells = _curves(report, measure)[:MOST_CELLS]
        if cells:
            yield download_csv(_data(measure, cells), f"{measure.name} (CSV)")


def _data(measure: Measure, cells: Sequence[CellCurves]) -> PlotData:
    name = measure.name.replace(" ", "_")
    return PlotData(
        name=name.replace("_", "-"),
        header=("cell_id", "run", "step", "seconds", "usd", name),
        rows=[
            (each.cell_id, number + 1, point.step, point.seconds, point.usd, point.value)
            for each in cells
            for number, run in enumerate(each.points)
            for point in run
        ],
    )


def _curves(report: Report, measure: Measure) -> list[CellCurves]:
    """Each cell's first trials, the best cells first."""
    by_cell: dict[str, list[tuple[LearningPoint, ...]]] = {}
    for result in report.results:
        curve = measure.curve(result)
        if curve:
            by_cell.setdefault(result.run.cell.cell_id, []).append(curve)
    return [
        CellCurves(cell_id=row.cell_id, label=row.label, points=tuple(by_cell[row.cell_id][:MOST_TRIALS]))
        for row in report.verdict.ranked_rows
        if row.cell_id in by_cell
    ]
