"""The fields of a large dataclass are documented line by line, where an editor finds them."""

import ast
from collections.abc import Iterator
from pathlib import Path

CORE = Path(__file__).parents[3] / "traindyno" / "core"
MOST_FIELDS_IN_A_PARAGRAPH = 8
MOST_LINES = 5


def large_classes() -> Iterator[tuple[str, int]]:
    """Name and lines of docstring of each class with many fields."""
    for file in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                count = sum(isinstance(part, ast.AnnAssign) for part in node.body)
                if count > MOST_FIELDS_IN_A_PARAGRAPH:
                    yield node.name, len((ast.get_docstring(node) or "").splitlines())


def test_many_fields_are_not_documented_in_a_paragraph() -> None:
    found = dict(large_classes())
    assert {"CellRow", "MeasuredRun", "Verdict"} <= set(found)
    assert [name for name, lines in found.items() if lines > MOST_LINES] == []
