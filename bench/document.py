"""docs/results/performance.json, with all figures, and its summary in docs/performance.md.

Sections of groups that were not measured this time are kept as they are.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from bench.figure_text import figure_row
from bench.figures import Section

BEGIN = "<!-- written by python -m bench -->"
END = "<!-- end of what python -m bench wrote -->"
FIGURE_KEYS = ("figure", "measured", "least_most", "budget", "met")
MISSED = "no"
COLUMNS = 100


def stored_section(section: Section, origin: str) -> dict[str, Any]:
    """A section as the file holds it, with its origin: when and where it was measured."""
    figures = [
        dict(zip(FIGURE_KEYS, figure_row(figure), strict=True)) for figure in section.figures
    ]
    return {
        "command": section.command,
        "origin": origin,
        "figures": [{**figure, "met": figure["met"].strip("*")} for figure in figures],
        "notes": [*section.notes, *filter(None, [section.why_unmeasured])],
    }


def read_results(path: Path) -> dict[str, Any]:
    """The sections of the file by title; none where there is no file."""
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return results


def merge(
    before: Mapping[str, Any], measured: Mapping[str, Any], titles: Sequence[str]
) -> dict[str, Any]:
    """The results with the new ones, in the order of ``titles``, which has all sections."""
    sections = {**before, **measured}
    return {title: sections[title] for title in titles if title in sections}


def summary(results: Mapping[str, Any]) -> str:
    """The page's table: a line a section with its counts, and the budgets that were missed."""
    rows = []
    missed = []
    for title, section in results.items():
        figures = section["figures"]
        bounded = [figure for figure in figures if figure["met"]]
        over = [figure for figure in bounded if figure["met"] == MISSED]
        date = section["origin"].partition(" · ")[0]
        budgets = f"{len(bounded) - len(over)} of {len(bounded)}" if bounded else "none"
        rows.append(f"| {title} | `{section['command']}` | {date} | {budgets} |")
        texts = [
            f"- {figure['figure']}: {figure['measured']}, budget {figure['budget']}."
            for figure in over
        ]
        missed += [fill(text, COLUMNS, subsequent_indent="  ") for text in texts]
    return "\n".join(
        [
            BEGIN,
            "",
            "| what | command | measured | budgets met |",
            "|---|---|---|---|",
            *rows,
            "",
            "Budgets that were missed:" if missed else "No budget was missed.",
            *([""] if missed else []),
            *missed,
            "",
            END,
        ]
    )


def write(page: Path, results: Path, section: Section, origin: str, titles: Sequence[str]) -> None:
    """Writes a section to the file of results, and the page's summary anew.

    Args:
        page: docs/performance.md, or another page with the marks of the summary.
        results: The file of results.
        section: What was measured.
        origin: When and where it was measured.
        titles: All sections that there are, in their order.
    """
    stored = {section.title: stored_section(section, origin)}
    merged = merge(read_results(results), stored, titles)
    results.write_text(json.dumps(merged, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    page.write_text(head + summary(merged) + rest.partition(END)[2], encoding="utf-8")
