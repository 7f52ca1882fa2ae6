"""Each slice can be taken out: the rest plans, runs and judges."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.slices.without_a_slice import judge_quickstart
from tests.unit.test_boundaries import REPO_ROOT, SLICES

# Of the suite, whose features may be gone when it is read.
SECTIONS = {
    "claims": {"title": "A post", "source": "a post", "claims": []},
    "estimates": {"examples": 1, "sequence_length": 1, "cells": {}},
}


@pytest.fixture(scope="module")
def whole_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a report that all slices have written."""
    path = tmp_path_factory.mktemp("whole") / "report.json"
    path.write_text(json.dumps(judge_quickstart(**SECTIONS)))
    return path


@pytest.mark.parametrize("name", SLICES)
def test_without_a_slice_the_rest_plans_runs_judges_and_reads(
    name: str, whole_report: Path, tmp_path: Path
) -> None:
    """In a copy of the package: its folder is gone, and the lines that name it."""
    shutil.copytree(REPO_ROOT / "traindyno", tmp_path / "traindyno")
    shutil.rmtree(tmp_path / "traindyno/slices" / name)
    for table in ("__init__.py", "features.py"):
        take_out(name, tmp_path / "traindyno" / table)
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
    """The lines that name the slice or its feature."""
    text = table.read_text()
    words = [f"slices.{name}.", *re.findall(rf"slices\.{name}\.feature import (\w+)", text)]
    lines = text.splitlines(keepends=True)
    table.write_text("".join(line for line in lines if not any(word in line for word in words)))
