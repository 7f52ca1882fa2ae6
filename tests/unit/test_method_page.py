"""docs/method.md holds the tables that the simulations write, in the form in which they write them."""

import re
from pathlib import Path

from bench.method_picture import PICTURE, draw

PAGE = Path(__file__).parents[2] / "docs/method.md"
SHARE = re.compile(r"\d{1,3}\.\d %|–")


def tables(name: str) -> list[list[list[str]]]:
    text = PAGE.read_text(encoding="utf-8")
    section = text.split(f"<!-- {name}: begin -->")[1].split(f"<!-- {name}: end -->")[0]
    return [[row.strip("|").split("|") for row in table.splitlines()] for table in section.strip().split("\n\n")]


def test_the_decision_tables_are_those_of_the_simulations() -> None:
    found = tables("decision simulations")
    assert [table[0][0].strip() for table in found] == [
        "false claims, 5 trials",
        "a lead of 5 %, CV 2 %",
        "95 % intervals that hold the truth, 5 trials",
    ]
    for head, line, *rows in found:
        assert [each.strip() for each in head[1:]] == ["2 cells", "8 cells", "32 cells"]
        assert set("".join(line)) == set("-:")
        assert rows
        assert all(SHARE.fullmatch(share.strip()) for row in rows for share in row[1:])


def test_the_picture_is_the_drawn_one() -> None:
    assert (PAGE.parents[1] / PICTURE).read_text(encoding="utf-8") == draw()
