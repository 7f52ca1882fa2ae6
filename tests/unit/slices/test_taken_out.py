"""Each slice can be taken out: the rest plans, runs and judges."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_boundaries import REPO_ROOT, SLICES


@pytest.mark.parametrize("name", SLICES)
def test_without_a_slice_the_rest_plans_runs_and_judges(name: str, tmp_path: Path) -> None:
    """In a copy of the package: its folder is gone, and the lines of the tables that name it."""
    shutil.copytree(REPO_ROOT / "traindyno", tmp_path / "traindyno")
    shutil.rmtree(tmp_path / "traindyno/slices" / name)
    for table in (
        tmp_path / "traindyno/__init__.py",
        *(tmp_path / "traindyno/slices").glob("*.py"),
    ):
        take_out(name, table)
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.slices.without_a_slice"],
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
    """The slice's imports, and the entries that use them, each of which has a line of its own."""
    text, own = table.read_text(), f"slices.{name}."
    imports = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom) and own in f"{node.module}."
    ]
    bound = [alias.asname or alias.name for node in imports for alias in node.names]
    gone = {number for node in imports for number in range(node.lineno, (node.end_lineno or 0) + 1)}
    entry = re.compile("|".join(rf"^    .*\b{each}\b" for each in (*bound, re.escape(own))))
    kept = [
        line
        for number, line in enumerate(text.splitlines(), 1)
        if number not in gone and not entry.match(line)
    ]
    table.write_text("\n".join(kept) + "\n")
