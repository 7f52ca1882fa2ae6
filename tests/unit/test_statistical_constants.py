"""docs/results/constants.csv lists each constant of the method, with its value and its source."""

import ast
import csv
from collections.abc import Iterator
from pathlib import Path

from tests.unit.test_pages import REPO_ROOT

ROOMS = ("measurement", "costs", "verdict", "search")
PACKAGE = REPO_ROOT / "traindyno"
FIGURES = PACKAGE / "figures"
JUDGING_SLICES = ("claims", "pricing", "scaling")
TABLE = REPO_ROOT / "docs" / "results" / "constants.csv"
KINDS = ("threshold", "level", "definition", "least count", "search")
MOST_CHOSEN = 12
# Nothing is concluded from these: precision of a computation, that one value has no spread, sizes
# of texts and lists, units, and other tools' rules.
NO_METHOD = {
    "precision": (
        "_DEVIATIONS_PER_MAD _DEVIATIONS_PER_MEAN_DISTANCE LEAST_DEVIATION"
        " _MOST_AUTOCORRELATION _LEAST_AUTOCORRELATION LEAST_PIVOT _STEP"
        " MOST_CORRELATION _MOST_TERMS _ENOUGH _CLOSE _NEARLY_NORMAL _NORMAL _HALVINGS"
        " _GROUP _MOST _LEAST_PENALTY _MOST_PENALTY _MOST_ALIKE"
        " KNOWN _TAIL _MOST_LOG MOST_EXPOSURE CLOCK_SECONDS"
    ),
    "size": (
        "MOST_TRIALS LOSS_POINTS_IN_ALL FEWEST_POINTS MOST_POINTS "
        "_MOST_NAMED MOST_MISSING MOST_CHANGES "
        "MOST_CROSSOVERS MOST_NAMES GROWTH LONGEST_ERROR LONGEST_VALUE"
    ),
    "arithmetic": "LEAST_COMPARED",
    "unit": "SECONDS_PER_HOUR SECONDS_PER_MINUTE MINUTE HOUR DAY",
    "text": "LEAST_NAMED_SHARE NOISY_VARIATION _WIDEST MOSTLY MOST_AFTER_TRACEBACK"
    " LONG_WORK_SECONDS TIMES_LONGER MOST_MINUTES WIDE",
}


def constants() -> Iterator[tuple[str, str, object]]:
    """Module, name and value of each constant that is a number, or an expression of numbers."""
    rooms = [PACKAGE / "core" / room for room in ROOMS]
    slices = [PACKAGE / "slices" / name for name in JUDGING_SLICES]
    for folder in (FIGURES, FIGURES / "in_job", *rooms, *slices):
        for path in sorted(folder.glob("*.py")):
            for name, value in _assigned(path):
                if name.strip("_").isupper() and _is_number(value) and not _follows(value):
                    yield f"{folder.name}/{path.name}", name, ast.unparse(value)


def _assigned(path: Path) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Tuple)
            and isinstance(node.targets[0], ast.Tuple)
        ):
            pairs = zip(node.targets[0].elts, node.value.elts, strict=True)
        elif isinstance(node, ast.Assign):
            pairs = zip(node.targets, [node.value], strict=True)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = zip([node.target], [node.value], strict=True)
        else:
            continue
        yield from ((target.id, value) for target, value in pairs if isinstance(target, ast.Name))


def _is_number(value: ast.expr) -> bool:
    """A number, a tuple of numbers, or a function of numbers such as a logarithm."""
    allowed = (
        ast.Constant,
        ast.UnaryOp,
        ast.USub,
        ast.BinOp,
        ast.operator,
        ast.Call,
        ast.Name,
        ast.Load,
        ast.Tuple,
    )
    nodes = list(ast.walk(value))
    numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
    has_only_numbers = all(
        isinstance(number, int | float) and not isinstance(number, bool) for number in numbers
    )
    return bool(numbers) and has_only_numbers and all(isinstance(node, allowed) for node in nodes)


def _follows(value: ast.expr) -> bool:
    """From another constant, with no number but 1: such as 1 - SIGNIFICANCE."""
    nodes = list(ast.walk(value))
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    numbers = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return any(name.isupper() for name in names) and numbers <= {1}


def listed() -> dict[tuple[str, str], dict[str, str]]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return {(row["module"], row["name"]): row for row in csv.DictReader(file)}


def test_the_table_lists_each_constant_of_the_method_with_its_value() -> None:
    excluded = {name for names in NO_METHOD.values() for name in names.split()}
    values = {(module, name): value for module, name, value in constants() if name not in excluded}
    assert {key: row["value"] for key, row in listed().items()} == values


def test_each_listed_constant_has_a_kind_and_a_source() -> None:
    rows = listed()
    for key, row in rows.items():
        assert row["kind"] in KINDS, key
        assert row["source"], key
    assert sum(row["kind"] in ("threshold", "level") for row in rows.values()) <= MOST_CHOSEN


def test_an_excluded_name_exists() -> None:
    names = {name for _, name, _ in constants()}
    assert [
        name for listing in NO_METHOD.values() for name in listing.split() if name not in names
    ] == []
