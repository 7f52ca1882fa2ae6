"""docs/performance.md says of each section which code it measured, and how to find the sections that are older than it.

No test fails where a section is older: a change of measured code would then have to change the page.
"""

import pytest

from bench import __main__ as bench
from bench import document, groups
from bench.measured_code import digests_by_title

PAGE = bench.DOCUMENT.read_text(encoding="utf-8")


def test_each_section_names_its_group_and_commit_and_the_page_the_command() -> None:
    sections = document.split_sections(PAGE)
    measured_groups = {group: title for group, title in groups.TITLES.items() if title in sections}
    assert list(sections) == list(measured_groups.values())
    for group, title in measured_groups.items():
        heading, _, measured, *_ = sections[title].splitlines()
        assert measured.startswith(f"`{groups.command(group)}` · "), heading
        assert "· commit " in measured, heading
    assert "`python -m bench --outdated`" in document.PREFACE


def test_outdated_sections_are_listed_and_the_page_stays(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--outdated"]) == 0
    outdated = document.outdated_titles(PAGE, digests_by_title())
    told = [groups.command(group) for group, title in groups.TITLES.items() if title in outdated]
    assert capsys.readouterr().err.splitlines() == [f"older than its code: {command}" for command in told]
    assert bench.DOCUMENT.read_text(encoding="utf-8") == PAGE
