"""Files of docs/results, which hold every row of what the tests found."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def read_rows(name: str) -> list[list[str]]:
    """The rows of a file of results, without its heading."""
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def write_rows(name: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with (RESULTS / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([heads, *rows])
