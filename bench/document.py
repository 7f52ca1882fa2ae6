"""docs/performance.md: sections of groups that were not measured this time are kept as they are."""

import re
from collections.abc import Mapping, Sequence

HEADING = "## "
OLDER = "**This section is older than its code:**"
_COMMIT, _CODE = re.compile(r"· commit (\S+)"), re.compile(r"· code (\w+)")
PREFACE = """# Performance

Written by `make bench` (`python -m bench`), which measures all groups, or by `python -m bench GROUP …`, which
replaces the sections of these groups and keeps the other sections with their dates. `python -m bench --mark` marks each
section whose code has changed since. Ratios compare two things that ran in turn (A B A B) on the same machine; a figure
is the median of its repetitions; the number in brackets after minimum and maximum is the number of repetitions. Only
`make bench` checks the budgets: a test would fail by chance on a busy machine.
"""


def merge(before: str, measured: Mapping[str, str], titles: Sequence[str]) -> str:
    """The new document. ``measured`` holds sections by title, ``titles`` all that there are, in their order."""
    sections = {**split_sections(before), **measured}
    kept = [sections[title].strip() for title in titles if title in sections]
    return "\n\n".join([PREFACE.strip(), *kept]) + "\n"


def mark(page: str, digests: Mapping[str, str]) -> str:
    """The page, in which each section that was measured on other code says so. ``digests`` of today's code by title."""
    sections = split_sections(page)
    marked = {title: _marked(text, digests[title]) for title, text in sections.items() if title in digests}
    return merge(page, marked, list(sections))


def stale_titles(page: str, digests: Mapping[str, str]) -> list[str]:
    return [
        title for title, text in split_sections(page).items() if title in digests and _is_stale(text, digests[title])
    ]


def _marked(section: str, digest: str) -> str:
    heading, blank, measured, *rest = [line for line in section.splitlines() if not line.startswith(OLDER)]
    while rest and not rest[0].strip():
        rest = rest[1:]
    commit = _COMMIT.search(measured)
    at = commit[1] if commit else "an unknown commit"
    said = [OLDER + f" it was measured at {at}, and the code that it measures has changed since.", ""]
    return "\n".join([heading, blank, measured, "", *(said if _is_stale(section, digest) else []), *rest])


def _is_stale(section: str, digest: str) -> bool:
    """A section without a digest is from before there were any."""
    code = _CODE.search(section)
    return code is None or code[1] != digest


def split_sections(document: str) -> dict[str, str]:
    sections: dict[str, list[str]] = {}
    title = None
    for line in document.splitlines():
        if line.startswith(HEADING):
            title = line.removeprefix(HEADING).strip()
        if title is not None:
            sections.setdefault(title, []).append(line)
    return {title: "\n".join(lines) for title, lines in sections.items()}
