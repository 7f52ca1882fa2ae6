"""docs/performance.md: sections of groups that were not measured this time are kept as they are."""

from collections.abc import Mapping, Sequence

HEADING = "## "
PREFACE = """# Performance

Written by `make bench` (`python -m bench`), which measures all groups, or by `python -m bench GROUP
…`, which replaces the sections of these groups and keeps the other sections with their dates. Each
section has the commit that it measured. Ratios compare two things that ran in turn (A B A B) on the
same machine; a figure is the median of its repetitions; the number in brackets after minimum and
maximum is the number of repetitions. Only `make bench` checks the budgets: a test would fail by
chance on a busy machine. """


def merge(before: str, measured: Mapping[str, str], titles: Sequence[str]) -> str:
    """The new document.

    ``measured`` holds sections by title, ``titles`` all that there are, in their order.
    """
    sections = {**split_sections(before), **measured}
    kept = [sections[title].strip() for title in titles if title in sections]
    return "\n\n".join([PREFACE.strip(), *kept]) + "\n"


def split_sections(document: str) -> dict[str, str]:
    sections: dict[str, list[str]] = {}
    title = None
    for line in document.splitlines():
        if line.startswith(HEADING):
            title = line.removeprefix(HEADING).strip()
        if title is not None:
            sections.setdefault(title, []).append(line)
    return {title: "\n".join(lines) for title, lines in sections.items()}
