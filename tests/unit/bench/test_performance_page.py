"""docs/performance.md says of each section which group and commit it measured."""

from bench import __main__ as bench
from bench import document, groups

PAGE = bench.DOCUMENT.read_text(encoding="utf-8")


def test_each_section_names_its_group_and_commit_and_the_page_the_command() -> None:
    sections = document.split_sections(PAGE)
    measured_groups = {group: title for group, title in groups.TITLES.items() if title in sections}
    assert list(sections) == list(measured_groups.values())
    for group, title in measured_groups.items():
        heading, _, measured, *_ = sections[title].splitlines()
        assert measured.startswith(f"`{groups.command(group)}"), heading
        assert "· commit " in measured, heading
