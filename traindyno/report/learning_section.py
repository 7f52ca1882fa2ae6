"""Training loss and evaluations over steps, time and cost, and whether cells with the same work
learn alike.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from traindyno.core.costs.to_target import LearningPoint, evaluation_curve, training_curve
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Quality
from traindyno.core.verdict.cautions import describe_parity
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.figure import View, draw_figure, draw_views
from traindyno.report.charts.line_chart import Line, Point, draw_lines
from traindyno.report.charts.plot import Unit, seconds_unit
from traindyno.report.markup import Markup, PlotData, download_csv, element

MOST_CELLS = 8
MOST_TRIALS = 3
Curve = tuple[LearningPoint, ...]
# A cell's id and label, and the curves of its first trials.
CellCurves = tuple[str, str, Sequence[Curve]]
MEASURES: Mapping[str, Callable[[RunResult], Curve]] = {
    "training loss": training_curve,
    "accuracy": partial(evaluation_curve, quality=Quality.ACCURACY),
    "evaluation loss": partial(evaluation_curve, quality=Quality.LOSS),
    "perplexity": partial(evaluation_curve, quality=Quality.PERPLEXITY),
}
ACROSS: Mapping[str, tuple[Callable[[LearningPoint], float | None], Callable[[float], Unit]]] = {
    "steps": (lambda point: point.step, lambda _: Unit(size=1)),
    "time": (lambda point: point.seconds, seconds_unit),
    "cost": (lambda point: point.usd, lambda _: Unit(size=1, before="$")),
}


def draw_learning_section(report: Report) -> Markup | None:
    known = {name: cells for name, curve in MEASURES.items() if (cells := _curves(report, curve))}
    if not known:
        return None
    measured = sum(row.trials > 0 for row in report.verdict.rows)
    left_out = f" The best {MOST_CELLS} of {measured} cells." if measured > MOST_CELLS else ""
    return element(
        "section",
        element("h2", "Loss and quality"),
        element(
            "p",
            "Each line is a run. Time is wall clock from the creation of the job; cost is the "
            f"amount billed by then.{left_out}",
            class_="hint",
        ),
        draw_views(
            "learning", [view for name, cells in known.items() for view in _views(name, cells)]
        ),
        element(
            "p",
            "The data of these charts:",
            *(download_csv(_data(name, cells), f"{name} (CSV)") for name, cells in known.items()),
            class_="hint",
        ),
        _parities(report.verdict),
        id="loss",
    )


def _parities(verdict: Verdict) -> Markup | None:
    """Comparisons that do not agree are first."""
    parities = sorted(
        verdict.likeness.parities, key=lambda parity: parity.finding is ParityFinding.AGREES
    )
    if not parities:
        return None
    agreeing = sum(parity.finding is ParityFinding.AGREES for parity in parities)
    return element(
        "details",
        element(
            "summary",
            f"Cells that should learn alike: {agreeing} of {len(parities)} comparisons agree",
        ),
        element("ul", *(element("li", describe_parity(verdict, parity)) for parity in parities)),
        open="" if agreeing < len(parities) else None,
    )


def _views(name: str, cells: Sequence[CellCurves]) -> Iterator[View]:
    for across, (position, unit) in ACROSS.items():
        lines = []
        for _, label, curves in cells:
            placed = [
                tuple(
                    Point(x=x, y=point.value)
                    for point in curve
                    if (x := position(point)) is not None
                )
                for curve in curves
            ]
            if any(placed):
                lines.append(Line(label=label, curves=tuple(filter(None, placed))))
        if lines:
            title = f"{name.capitalize()} over {across}"
            highest = max(point.x for line in lines for point in line.points)
            picture = draw_lines(
                lines, across_name=across, title=title, unit=unit(highest), is_from_zero=False
            )
            yield View(name=f"{name} / {across}", content=draw_figure(title, picture))


def _data(name: str, cells: Sequence[CellCurves]) -> PlotData:
    return PlotData(
        name=name.replace(" ", "-"),
        header=("cell_id", "run", "step", "seconds", "usd", name.replace(" ", "_")),
        rows=list(_data_rows(cells)),
    )


def _data_rows(cells: Sequence[CellCurves]) -> Iterator[Sequence[object]]:
    for cell_id, _, curves in cells:
        for number, curve in enumerate(curves, start=1):
            for point in curve:
                yield cell_id, number, point.step, point.seconds, point.usd, point.value


def _curves(report: Report, curve: Callable[[RunResult], Curve]) -> list[CellCurves]:
    """The best cells first.

    Simulated runs have none: they do not train, and log losses that were made up.
    """
    by_cell: dict[str, list[Curve]] = {}
    for result in report.results:
        if not result.is_simulated and (points := curve(result)):
            by_cell.setdefault(result.run.cell.cell_id, []).append(points)
    rows = [row for row in report.verdict.ranked_rows if row.cell_id in by_cell]
    return [
        (row.cell_id, row.label, by_cell[row.cell_id][:MOST_TRIALS]) for row in rows[:MOST_CELLS]
    ]
