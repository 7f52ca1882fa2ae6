"""Each fault of docs/results/faults.csv is injected by a test that exists, in the shares and counts
that docs/reliability.md states.
"""

import ast
import csv
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.local.chaos_lab import FAULTS

REPO_ROOT = Path(__file__).resolve().parents[2]
PAGE = (REPO_ROOT / "docs" / "reliability.md").read_text()
with (REPO_ROOT / "docs" / "results" / "faults.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))
TEST = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")
ENDS = "Ends of jobs"


def rows(page: str) -> Iterator[list[str]]:
    """The cells of each row of each table, headings included."""
    for line in page.splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


@cache
def defined_tests(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }


def test_each_row_is_whole_and_names_existing_tests() -> None:
    assert len(ROWS) > 20
    described = [row for row in ROWS if row["group"] != ENDS]
    assert [row for row in described if not all(row.values())] == []
    ends = [row["fault"] for row in ROWS if row["group"] == ENDS]
    assert ends == [cells[0] for cells in rows(PAGE) if len(cells) == 4][1:]
    named = [(row["fault"], test) for row in ROWS for test in row["tests"].split()]
    assert {fault for fault, _ in named} == {row["fault"] for row in ROWS}
    matches = [(test, TEST.fullmatch(test)) for _, test in named]
    missing = [
        test
        for test, match in matches
        if match is None or match[2] not in defined_tests(REPO_ROOT / match[1])
    ]
    assert missing == []


def test_the_counts_of_the_page_equal_the_file() -> None:
    kinds = Counter(row["group"] for row in ROWS)
    tests = Counter(row["group"] for row in ROWS for _ in row["tests"].split())
    stated = [cells for cells in rows(PAGE) if len(cells) == 3][1:]
    assert stated == [[group, str(kinds[group]), str(tests[group])] for group in kinds]
    assert f"{len(ROWS)} kinds" in " ".join(PAGE.split())


def test_the_shares_of_the_faults_equal_the_tests() -> None:
    stated = dict(re.findall(r"`(\w+_fraction)` (\d+)\s%", PAGE))
    assert {name: int(percent) / 100 for name, percent in stated.items()} == {
        name: share for name, share in FAULTS.items() if name.endswith("_fraction")
    }
