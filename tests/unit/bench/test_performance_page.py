"""docs/performance.md sums up docs/results/performance.json, and quotes its figures."""

import re

from bench import __main__ as bench
from bench import document, groups

PAGE = bench.DOCUMENT.read_text(encoding="utf-8")
RESULTS = document.read_results(bench.RESULTS)
QUOTED = re.compile(r"\*\*([^*]+)\*\*")


def test_each_section_names_its_group_and_commit() -> None:
    measured_groups = {group: title for group, title in groups.TITLES.items() if title in RESULTS}
    assert list(RESULTS) == list(measured_groups.values())
    for group, title in measured_groups.items():
        assert RESULTS[title]["command"].startswith(groups.command(group)), title
        assert "· commit " in RESULTS[title]["origin"], title


def test_the_page_sums_up_the_file() -> None:
    assert document.summary(RESULTS) in PAGE


def test_a_figure_quoted_on_the_page_is_in_its_section() -> None:
    """Sections of the page have titles of the file; figures are in bold."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    quoted = [
        (title, text)
        for title, words in zip(parts[::2], parts[1::2], strict=True)
        for text in QUOTED.findall(words)
    ]
    assert len(quoted) > 20
    measured = {
        title: {figure["measured"] for figure in section["figures"]}
        for title, section in RESULTS.items()
    }
    assert [(title, text) for title, text in quoted if text not in measured[title]] == []
