"""Time by phase: one stacked bar per cell."""

from collections.abc import Mapping, Sequence

from traindyno.core.costs.quantity_text import seconds_text
from traindyno.core.measurement.run_phases import phase_text
from traindyno.report.charts.plot import (
    Scale,
    at,
    legend,
    make_scale,
    row_label,
    seconds_unit,
    svg,
    text,
    vertical_grid,
)
from traindyno.report.markup import Markup, element, join

WIDTH = 1040
LABEL_WIDTH = 330
VALUE_WIDTH = 110
ROW_HEIGHT = 36
BAR_HEIGHT = 18
TOP = 8
BOTTOM = 26
# Phases that belong together share a hue; training itself is the darkest.
COLOR_OF_PHASE = {
    "waiting": "phase-wait",
    "starting": "phase-start",
    "downloading": "phase-start-2",
    "job_start": "phase-launch",
    "launch": "phase-launch",
    "import": "phase-import",
    "fork": "phase-import",
    "load": "phase-load",
    "setup": "phase-setup",
    "compile": "phase-compile",
    "first_step": "phase-first",
    "warmup": "phase-warmup",
    "steady": "phase-steady",
    "evaluate": "phase-evaluate",
    "save": "phase-save",
    "teardown": "phase-save-2",
    "job_end": "phase-save-2",
    "other": "phase-other",
    "uploading": "phase-save-2",
    "interrupted": "phase-wait",
    "stopping": "phase-wait",
}
OTHER_COLOR = "phase-other"


def draw_phases(rows: Sequence[tuple[str, Mapping[str, float]]], *, title: str) -> Markup:
    """Pairs of a cell's label and its mean seconds by phase."""
    height = TOP + ROW_HEIGHT * len(rows) + BOTTOM
    longest = max(sum(phases.values()) for _, phases in rows)
    scale = make_scale(
        0.0, longest, begin=LABEL_WIDTH, end=WIDTH - VALUE_WIDTH, unit=seconds_unit(longest)
    )
    bars = (
        _bar(label, phases, scale, TOP + ROW_HEIGHT * index)
        for index, (label, phases) in enumerate(rows)
    )
    described = "; ".join(
        f"{label}: {seconds_text(sum(phases.values()))}" for label, phases in rows
    )
    picture = svg(
        WIDTH,
        height,
        vertical_grid(scale, TOP, height - BOTTOM),
        *bars,
        title=title,
        description=described,
    )
    names = dict.fromkeys(
        name for _, phases in rows for name, seconds in phases.items() if seconds > 0
    )
    return join(legend([(color_of(name), phase_text(name)) for name in names]), picture)


def color_of(phase: str) -> str:
    return COLOR_OF_PHASE.get(phase, OTHER_COLOR)


def phase_order(phase: str) -> int:
    """The phase's place in the order of a run; phases that a user named come before
    ``uploading``.
    """
    known = [*COLOR_OF_PHASE]
    return known.index(phase) if phase in known else known.index("uploading") - 1


def _bar(label: str, phases: Mapping[str, float], scale: Scale, top: float) -> Markup:
    begin = 0.0
    parts = []
    for name, seconds in phases.items():
        if seconds > 0:
            parts.append(
                element(
                    "rect",
                    element("title", f"{label}: {phase_text(name)} {seconds_text(seconds)}"),
                    class_=color_of(name),
                    x=at(scale(begin)),
                    y=at(top + (ROW_HEIGHT - BAR_HEIGHT) / 2),
                    width=f"{scale(begin + seconds) - scale(begin):.2f}",
                    height=BAR_HEIGHT,
                )
            )
        begin += seconds
    middle = top + ROW_HEIGHT / 2
    return element(
        "g",
        row_label(label, LABEL_WIDTH - 14, middle, class_="label other"),
        *parts,
        text(seconds_text(begin), WIDTH - VALUE_WIDTH + 14, middle + 4, class_="value other"),
    )
