"""`traindyno plan --memory`: what it needs, its cache, and what a failed estimate says."""

import io
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.unit.suites import unprepared_document, unprepared_suite
from traindyno.api import memory_estimates, training_code
from traindyno.api.memory_estimates import EstimatesUnavailable, estimate_cells
from traindyno.cli.display.plan_table import print_memory
from traindyno.cli.output import Terminal
from traindyno.core.planning.plan import plan_suite
from traindyno.core.suite.checks.suite_check import parse_suite

PROGRAM = """#!/bin/sh
# Answers as training.memory does: 30 GB for each of the settings, with a change that fits.
exec {python} -c '
import json, sys
request = json.load(sys.stdin)
open("{folder}/requests", "a").write("asked\\n")
for settings in request["settings"]:
    size = 30 * 10**9 if settings["compiler"] == "none" else 10**9
    estimate = dict(peak_bytes=size, parameter_bytes=10**9, gradient_bytes=10**9)
    estimate["optimizer_bytes"] = 2 * 10**9
    print(json.dumps(dict(estimate=estimate, smaller_batch=4)))
'
"""


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It replaces the interpreter that runs the training code, which would import torch."""
    if find_spec("torch") is None:
        pytest.skip("estimates need PyTorch, their tests its version")
    program = tmp_path / "python"
    program.write_text(PROGRAM.format(python=sys.executable, folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return program


def silent(_: str) -> None:
    pass


def test_an_estimate_is_made_once_and_kept(tmp_path: Path, python: Path) -> None:
    said: list[str] = []
    first = estimate_cells(unprepared_suite(), beside=tmp_path, say=said.append)
    assert estimate_cells(unprepared_suite(), beside=tmp_path, say=said.append) == first
    assert (tmp_path / "requests").read_text() == "asked\n"
    assert said == [
        "estimating the memory of 2 configurations; a large model takes about a minute each, once"
    ]
    assert [memory.finding.is_too_large("ml.g5.xlarge") for memory in first] == [True, False], (
        "an A10G has 24 GB"
    )


def test_a_cache_folder_that_cannot_be_written_keeps_nothing(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        found = estimate_cells(unprepared_suite(), beside=tmp_path, say=silent)
        assert [memory.finding.is_too_large("ml.g5.xlarge") for memory in found] == [True, False]
    assert (tmp_path / "requests").read_text() == "asked\nasked\n"


def test_an_estimate_of_other_training_code_or_another_version_is_made_again(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "training"
    code.mkdir()
    monkeypatch.setattr(training_code, "training_folder", lambda: code)
    for content, version in (("a = 1", 1), ("a = 1", 1), ("a = 2", 1), ("a = 2", 2), ("a = 2", 2)):
        (code / "estimate.py").write_text(content)
        monkeypatch.setattr(memory_estimates, "FORM", version)
        estimate_cells(unprepared_suite(), beside=tmp_path, say=silent)
    assert (tmp_path / "requests").read_text() == "asked\n" * 3


def test_the_plan_shows_estimates_and_what_would_fit(tmp_path: Path, python: Path) -> None:
    suite = unprepared_suite()
    memory = estimate_cells(suite, beside=tmp_path, say=silent)
    plan = plan_suite(suite, execution_id="e", prices={}, quotas={}, histories={}, memory=memory)
    console = Terminal(width=200, record=True, file=io.StringIO())
    print_memory(console, plan)
    text = console.export_text()
    assert "27.9 GiB" in text
    assert "125 %" in text
    assert f"{plan.cells[0].cell_id}: is too large; what may help: batch_size_per_device 4" in text


def test_a_failed_estimate_says_how_it_ended(tmp_path: Path, python: Path) -> None:
    python.write_text("#!/bin/sh\necho 'ValueError: no such model' >&2\nexit 1\n")
    with pytest.raises(
        EstimatesUnavailable, match="ended with status 1 after 0 of 2 configurations: ValueError"
    ):
        estimate_cells(unprepared_suite(), beside=tmp_path, say=silent)


def test_without_the_extra_the_message_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        training_code, "find_spec", lambda name: None if name == "torch" else object()
    )
    with pytest.raises(EstimatesUnavailable) as raised:
        estimate_cells(unprepared_suite(), beside=tmp_path, say=silent)
    assert "this environment has no torch" in str(raised.value)
    assert "pip install 'traindyno[train]'" in str(raised.value)


def test_a_model_in_s3_has_no_estimate(tmp_path: Path, python: Path) -> None:
    document: dict[str, Any] = unprepared_document()
    document["workload"] = {**document["workload"], "model": "s3://bucket/model/"}
    with pytest.raises(EstimatesUnavailable, match="expected a Hub id, a local folder or a config"):
        estimate_cells(parse_suite(document), beside=tmp_path, say=silent)
