"""Each slice can be taken out: the rest plans, runs and judges."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.slices.without_a_slice import judge_quickstart
from tests.unit.test_boundaries import REPO_ROOT, SLICES


@pytest.fixture(scope="module")
def whole_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a report that all slices have written."""
    path = tmp_path_factory.mktemp("whole") / "report.json"
    path.write_text(json.dumps(judge_quickstart()))
    return path


@pytest.mark.parametrize("name", SLICES)
def test_without_a_slice_the_rest_plans_runs_judges_and_reads(
    name: str, whole_report: Path, tmp_path: Path
) -> None:
    """In a copy of the package: its folder is gone, and the lines of the tables that name it."""
    shutil.copytree(REPO_ROOT / "traindyno", tmp_path / "traindyno")
    shutil.rmtree(tmp_path / "traindyno/slices" / name)
    for table in (
        tmp_path / "traindyno/__init__.py",
        *(tmp_path / "traindyno/slices").glob("*.py"),
    ):
        take_out(name, table)
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.slices.without_a_slice", f"{whole_report}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{REPO_ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-2:] == [f"{tmp_path}/traindyno/__init__.py", "judged"], (
        done.stdout + done.stderr
    )


def take_out(name: str, table: Path) -> None:
    """The slice's imports, and the entries of the tables that use them."""
    text, own = table.read_text(), f"slices.{name}."
    tree = ast.parse(text)
    imports = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and own in f"{node.module}."
    ]
    bound = [alias.asname or alias.name for node in imports for alias in node.names]
    uses = re.compile("|".join(rf"\b{word}\b" for word in (*bound, re.escape(own))))
    entries = [
        (first, last)
        for first, last in entries_of(tree)
        if uses.search(ast.unparse(first)) or uses.search(ast.unparse(last))
    ]
    spans = [(node, node) for node in imports] + entries
    gone = {
        number
        for first, last in spans
        for number in range(first.lineno, (last.end_lineno or 0) + 1)
    }
    lines = text.splitlines()
    kept = [line for number, line in enumerate(lines, 1) if number not in gone]
    table.write_text("\n".join(kept) + "\n")


def entries_of(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """First and last part of each base of a class, and of each entry of a list or a mapping."""
    for node in tree.body:
        match node:
            case ast.ClassDef(bases=bases):
                yield from zip(bases, bases, strict=True)
            case ast.Assign(value=ast.List(elts=parts)) | ast.AnnAssign(value=ast.List(elts=parts)):
                yield from zip(parts, parts, strict=True)
            case ast.Assign(value=ast.Dict() as table) | ast.AnnAssign(value=ast.Dict() as table):
                yield from (
                    (key, value)
                    for key, value in zip(table.keys, table.values, strict=True)
                    if key is not None
                )
