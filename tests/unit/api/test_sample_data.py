"""The samples: text, and lines that a small model can tell apart."""

import csv
from pathlib import Path

from traindyno.api.sample_data import labelled_lines, write_sample

SOURCE = '''"""A module about nothing in particular."""
# A comment that is long enough to be kept
x = compute_something(with_an_argument)  # its own comment stays with the code
text = """A string over
several lines, which are neither prose nor code"""
# short
pass
'''


def test_lines_are_comments_or_code_and_strings_are_neither(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    assert list(labelled_lines(path)) == [
        ("A comment that is long enough to be kept", 0),
        ("x = compute_something(with_an_argument)  # its own comment stays with the code", 1),
    ]


def test_labelled_sample_has_two_balanced_splits_without_a_line_in_common(tmp_path: Path) -> None:
    write_sample("sample:comments-and-code", tmp_path)
    contents = {}
    for split, count in (("train", 4000), ("test", 800)):
        with (tmp_path / f"{split}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count
        assert sum(int(row["label"]) for row in rows) == count / 2
        contents[split] = {row["content"] for row in rows}
    assert (
        len(contents["train"] & contents["test"]) < 40
    )  # the licence and the imports that many files have
