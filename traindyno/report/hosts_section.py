"""Hosts: every trial's rate against the mean of its cell, host by host."""

from collections.abc import Sequence

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.verdict.host_effects import HostEffect, find_host_effects
from traindyno.core.verdict.report_data import Report
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.plot import Scale, Unit, at, make_scale, row_label, svg, text, vertical_grid
from traindyno.report.download import PlotData
from traindyno.report.markup import Markup, element

WIDTH, LABEL_WIDTH, VALUE_WIDTH = 1040, 330, 110
ROW_HEIGHT, TOP, BOTTOM = 26, 8, 26
MOST_HOSTS = 40
LEAST_REACH = 0.02
TITLE = "Rates of the trials by host"


def draw_hosts(report: Report) -> Markup | None:
    effects = find_host_effects(report.results)
    if not effects:
        return None
    shown = effects[:MOST_HOSTS]
    left_out = f"the slowest {MOST_HOSTS} of {len(effects)}; the data holds all" if len(effects) > MOST_HOSTS else None
    spread = report.verdict.host_spread
    return element(
        "section",
        element("h2", "Hosts"),
        element(
            "p",
            "A dot is a trial: its rate ÷ the mean rate of its cell, over all hosts. The spread between hosts is taken"
            f" as {share_text(spread.deviation)} ({spread.source}).",
            class_="hint",
        ),
        draw_figure(TITLE, _draw(shown), data=_data(effects), note=left_out),
        id="hosts",
    )


def _draw(effects: Sequence[HostEffect]) -> Markup:
    height = TOP + ROW_HEIGHT * len(effects) + BOTTOM
    changes = [trial.relative_rate - 1 for effect in effects for trial in effect.trials]
    reach = max(LEAST_REACH, *(abs(change) for change in changes)) * 100
    scale = make_scale(-reach, reach, begin=LABEL_WIDTH, end=WIDTH - VALUE_WIDTH, unit=Unit(size=1, after=" %"))
    described = "; ".join(f"{_name(effect)}: {_change(effect)}" for effect in effects)
    rows = (_row(effect, scale, TOP + ROW_HEIGHT * (index + 0.5)) for index, effect in enumerate(effects))
    return svg(
        WIDTH,
        height,
        vertical_grid(scale, TOP, height - BOTTOM),
        *rows,
        title=TITLE,
        description=described,
    )


def _row(effect: HostEffect, scale: Scale, y: float) -> Markup:
    dots = (
        element(
            "circle",
            element("title", f"{trial.run_id}, {trial.label}"),
            class_="dot other",
            cx=at(scale((trial.relative_rate - 1) * 100)),
            cy=at(y),
            r=3.5,
        )
        for trial in effect.trials
    )
    x = at(scale((effect.mean_rate - 1) * 100))
    mean = element("line", class_="interval best", x1=x, x2=x, y1=at(y - 8), y2=at(y + 8))
    return element(
        "g",
        row_label(_name(effect), LABEL_WIDTH - 14, y, class_="label other"),
        *dots,
        mean,
        text(_change(effect), WIDTH - VALUE_WIDTH + 14, y + 4, class_="value other"),
    )


def _name(effect: HostEffect) -> str:
    return f"{effect.host or 'host unknown'}, {effect.instance}"


def _change(effect: HostEffect) -> str:
    return f"{(effect.mean_rate - 1) * 100:+.1f} %".replace("-", "−")


def _data(effects: Sequence[HostEffect]) -> PlotData:
    return PlotData(
        name="hosts",
        header=("host", "instance", "run_id", "cell", "relative_rate"),
        rows=[
            (effect.host or "", effect.instance, trial.run_id, trial.label, trial.relative_rate)
            for effect in effects
            for trial in effect.trials
        ],
    )
