"""The memory in `traindyno plan`: what it needs, its cache, and what a failed estimate says."""

import io
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.unit.suites import unprepared_document
from traindyno.api import memory_estimates, training_code
from traindyno.api.memory_estimates import (
    LATER,
    EstimatesUnavailable,
    MemoryEstimator,
    estimate_cells,
    first_batches,
    with_configuration,
)
from traindyno.api.model_check import find_configuration
from traindyno.cli.display.plan_table import print_memory
from traindyno.cli.output import Terminal
from traindyno.core.planning.plan import plan_suite
from traindyno.core.run.workload import Dataset, Model
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite import Suite

PYTHON = sys.executable
PROGRAM = """#!/bin/sh
# Answers as training.memory does: 6 GB and 3 a sample, or 0.1 a sample with recomputation.
exec {python} -c '
import json, sys
json.loads(sys.stdin.readline())
for line in sys.stdin:
    request = json.loads(line)
    open("{folder}/requests", "a").write(request["find"] + " ")
    base = 0 if request["settings"]["activation_checkpointing"] else 6 * 10**9
    held = dict(parameter_bytes=10**9, optimizer_bytes=2 * 10**9)
    lines = dict(processes=[dict(lines=[[base, 3 * 10**9 if base else 10**8]], **held)])
    whole = dict(peak_bytes=5 * 10**9, **held)
    {change}
    found = dict(whole=whole, lines=lines)
    print(json.dumps({{request["find"]: found[request["find"]]}}), flush=True)
'
"""


def program_of(folder: Path, change: str = "") -> str:
    return PROGRAM.format(python=PYTHON, folder=folder, change=change)


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It replaces the interpreter that runs the training code, and a library that is always there
    replaces those that are asked for.
    """
    program = tmp_path / "python"
    program.write_text(program_of(tmp_path))
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(training_code, "LIBRARIES", ("pytest",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return program


def silent(_: str) -> None:
    pass


def asked(folder: Path) -> list[str]:
    return (folder / "requests").read_text().split()


def suite_of_batch(batch: Any, **training: Any) -> Suite:
    recomputes = "activation_checkpointing"
    training |= {"instance": "ml.g5.xlarge", "strategy": "single", "batch_size_per_device": batch}
    matrix = {recomputes: [False, True]}
    return parse_suite(
        unprepared_document(training=training, baseline={recomputes: False}, matrix=matrix)
    )


def test_an_estimate_is_made_once_and_kept_for_every_batch(tmp_path: Path, python: Path) -> None:
    said: list[str] = []
    peaks = [
        [
            estimate.finding.estimate.peak_bytes // 10**8
            for estimate in estimate_cells(suite_of_batch(batch), beside=tmp_path, say=said.append)
            if estimate.finding.estimate is not None
        ]
        for batch in (8, 2)
    ]
    assert peaks == [[300, 8], [120, 2]]
    assert asked(tmp_path) == ["lines", "lines"]
    plain = "estimating memory: strategy single, fp32, 1 device"
    assert said == [plain, plain.replace("1 device", "activation_checkpointing, 1 device")]


@pytest.mark.parametrize(("begin", "first"), [(1, [5, 223]), (2, [])])
def test_a_search_begins_with_what_kept_estimates_say_fits(
    tmp_path: Path, python: Path, begin: int, first: list[int]
) -> None:
    """Of 22.39 GB for tensors of an A10G, unless the suite says where it begins."""
    suite = suite_of_batch({"search": "largest", "begin": begin})
    assert first_batches(suite, beside=tmp_path) == {}
    estimate_cells(suite, beside=tmp_path, say=silent)
    assert [*first_batches(suite, beside=tmp_path).values()] == first
    assert asked(tmp_path) == ["lines", "lines"]


def test_a_single_sequence_without_its_mask_is_estimated_by_itself(
    tmp_path: Path, python: Path
) -> None:
    suite = suite_of_batch(1, packing=False, padding="longest")
    suite = replace(suite, workload=replace(suite.workload, dataset=Dataset(path="texts")))
    for _ in range(2):
        first, _ = estimate_cells(suite, beside=tmp_path, say=silent)
        assert first.finding.estimate is not None
        assert first.finding.estimate.peak_bytes == 5 * 10**9
        assert first.finding.largest_batch == 5, "(22.4 - 6) GB / 3 GB, of an A10G"
    assert asked(tmp_path) == ["lines", "whole"] * 2


def test_a_batch_with_nonlinear_steps_is_estimated_whole(tmp_path: Path, python: Path) -> None:
    python.write_text(program_of(tmp_path, "lines = None"))
    for batch in (8, 4, 8):
        first, _ = estimate_cells(suite_of_batch(batch), beside=tmp_path, say=silent)
        assert first.finding.largest_batch is None
    assert asked(tmp_path) == ["lines", "whole"] * 2 + ["whole"] * 2


def test_an_unwritable_cache_folder_keeps_nothing(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        estimate_cells(suite_of_batch(8), beside=tmp_path, say=silent)
    assert asked(tmp_path) == ["lines"] * 4


def test_an_estimate_of_other_training_code_or_another_version_is_made_again(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "training"
    code.mkdir()
    monkeypatch.setattr(training_code, "training_folder", lambda: code)
    for content, version in (("a = 1", 1), ("a = 1", 1), ("a = 2", 1), ("a = 2", 2), ("a = 2", 2)):
        (code / "estimate.py").write_text(content)
        monkeypatch.setattr(memory_estimates, "FORM", version)
        estimate_cells(suite_of_batch(8), beside=tmp_path, say=silent)
    assert asked(tmp_path) == ["lines"] * 6


def test_the_plan_shows_estimates_and_fitting_batches(tmp_path: Path, python: Path) -> None:
    suite = suite_of_batch(8)
    memory = estimate_cells(suite, beside=tmp_path, say=silent)
    plan = plan_suite(suite, execution_id="e", prices={}, quotas={}, histories={}, memory=memory)
    console = Terminal(width=200, record=True, file=io.StringIO())
    print_memory(console, plan)
    text = console.export_text()
    assert "27.9 GiB" in text
    assert "125 %" in text
    assert f"{plan.cells[0].cell_id}: is too large; what may help: batch_size_per_device 5" in text


def test_after_the_given_time_only_kept_estimates_are_known(tmp_path: Path, python: Path) -> None:
    first, second = (cell.settings for cell in suite_of_batch(8).cells)
    workload = suite_of_batch(8).workload
    with MemoryEstimator(workload, beside=tmp_path, say=silent) as estimator:
        known = estimator.find(first)
    with MemoryEstimator(workload, beside=tmp_path, say=silent) as estimator:
        estimator.until = 0
        assert estimator.find(first) == known
        assert estimator.find(second).why_unknown == LATER
    python.write_text(program_of(tmp_path, "import time; time.sleep(600)"))
    with MemoryEstimator(workload, beside=tmp_path, say=silent) as estimator:
        estimator.until = monotonic() + 0.2
        assert estimator.find(second).why_unknown == LATER


def reason(suite: Suite, beside: Path) -> str:
    with pytest.raises(EstimatesUnavailable) as raised:
        estimate_cells(suite, beside=beside, say=silent)
    return str(raised.value)


def test_a_failed_estimate_says_how_it_ended(tmp_path: Path, python: Path) -> None:
    python.write_text("#!/bin/sh\necho 'ValueError: no such model' >&2\nexit 1\n")
    for estimate in estimate_cells(suite_of_batch(8), beside=tmp_path, say=silent):
        assert estimate.finding.why_unknown == (
            "the estimate ended with status 1: ValueError: no such model"
        )


def test_without_the_extra_the_message_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        training_code, "find_spec", lambda name: None if name == "torch" else object()
    )
    text = reason(suite_of_batch(8), tmp_path)
    assert "this environment has no torch" in text
    assert "pip install 'traindyno[train]'" in text


def test_a_hub_model_needs_the_extra_and_not_the_hubs_own_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_code, "LIBRARIES", ("no_torch",))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    document: dict[str, Any] = unprepared_document()
    suite = parse_suite({**document, "workload": {**document["workload"], "model": "gpt2"}})
    assert "this environment has no no_torch" in reason(suite, tmp_path)
    assert find_configuration("gpt2", None, None) is None


def test_a_model_missing_on_this_machine_has_no_estimate(tmp_path: Path, python: Path) -> None:
    document: dict[str, Any] = unprepared_document()
    document["workload"] = {**document["workload"], "model": "s3://bucket/model/"}
    assert "expected a folder with a config.json" in reason(parse_suite(document), tmp_path)


def test_a_folder_is_estimated_by_its_configuration(tmp_path: Path) -> None:
    document: dict[str, Any] = unprepared_document()
    document["workload"] = {**document["workload"], "model": "model"}
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "gpt2", "n_layer": 3}')
    model = with_configuration(parse_suite(document).workload, tmp_path).model
    assert model == Model(config={"model_type": "gpt2", "n_layer": 3})
