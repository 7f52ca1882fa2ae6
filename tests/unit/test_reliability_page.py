"""Each fault that tests/FAULTS.md lists is injected by a test that exists, in the shares that the
page states.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.local.chaos_lab import FAULTS

REPO_ROOT = Path(__file__).resolve().parents[2]
PAGE = (REPO_ROOT / "tests" / "FAULTS.md").read_text()
KEPT = (REPO_ROOT / "docs" / "reliability.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
COLUMNS = ["fault", "how often", "what held", "lost at most", "test"]
ENDS = ["what ends the job", "test"]


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


def test_each_row_is_whole_and_names_tests_that_exist() -> None:
    faults = [row for row in rows(PAGE) if row not in (COLUMNS, ENDS)]
    assert len(faults) > 20
    widths = {len(COLUMNS), len(ENDS)}
    assert [row for row in faults if len(row) not in widths or not all(row)] == []
    assert [row[0] for row in faults if len(row) == len(ENDS)] == [
        row[0] for row in rows(KEPT) if row[0] != ENDS[0]
    ]
    assert [row[0] for row in faults if not TEST.search(row[-1])] == []
    named = [(row[0], *found) for row in faults for found in TEST.findall(row[-1])]
    assert [each for each in named if each[2] not in defined_tests(REPO_ROOT / each[1])] == []
    assert [row[0] for row in faults if len(TEST.findall(row[-1])) != row[-1].count("`") / 2] == []


def test_the_shares_of_the_faults_are_those_of_the_tests() -> None:
    stated = dict(re.findall(r"`(\w+_fraction)` (\d+) %", PAGE))
    assert {name: int(percent) / 100 for name, percent in stated.items()} == {
        name: share for name, share in FAULTS.items() if name.endswith("_fraction")
    }
