"""Figures as rows of a table, for a terminal and for docs/results/performance.json."""

from bench.figures import Budget, Figure, Section, Spread

HEADINGS = ("figure", "measured", "least – most", "budget", "met")


def section_lines(section: Section, origin: str) -> list[str]:
    """A section in Markdown, with its origin: when and where it was measured."""
    lines = [f"## {section.title}", "", f"`{section.command}` · {origin}", ""]
    if section.figures:
        rows = [HEADINGS, tuple("---" for _ in HEADINGS), *map(figure_row, section.figures)]
        lines += [f"| {' | '.join(row)} |" for row in rows] + [""]
    for note in (*section.notes, *filter(None, [section.why_unmeasured])):
        lines += [note, ""]
    return lines


def figure_row(figure: Figure) -> tuple[str, ...]:
    value = figure.value
    unit = f" {figure.unit}" if figure.unit else ""
    if isinstance(value, Spread):
        measured = f"{number_text(value.median)}{unit}"
        extent = f"{number_text(value.least)} – {number_text(value.most)} ({value.count})"
    else:
        measured = "unknown" if value is None else f"{number_text(value)}{unit}"
        extent = ""
    met = {True: "yes", False: "**no**", None: ""}[figure.is_met]
    return figure.name, measured, extent, budget_text(figure.budget, unit), met


def budget_text(budget: Budget | None, unit: str) -> str:
    return "" if budget is None else f"{budget.sense} {number_text(budget.limit)}{unit}"


def number_text(value: float) -> str:
    """Three significant digits without trailing zeros; of less than a thousandth, one."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) < 1e-3:
        return f"{value:.0e}".replace("e-0", "e-")
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"
