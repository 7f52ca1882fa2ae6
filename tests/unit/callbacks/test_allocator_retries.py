"""Retries of CUDA's allocator in the step log: read from its statistics, and written when there are more."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from traindyno.callbacks.clock import HostClock
from traindyno.callbacks.environment import allocator_retries
from traindyno.callbacks.recorder import StepLogFile, StepRecorder
from traindyno.core.step_log.line import ALLOCATOR_RETRIES, IN_BACKGROUND, RETRIES

# Some of the keys that torch documents; CUDA's own asynchronous allocator has none of its retries.
STATISTICS = {"num_alloc_retries": 3, "num_ooms": 0, "allocated_bytes.all.peak": 75 * 2**30, "segment.all.current": 41}


@pytest.mark.parametrize(
    ("statistics", "expected"), [(STATISTICS, 3), ({**STATISTICS, "num_alloc_retries": 0}, 0), ({}, 0)]
)
def test_the_retries_of_the_statistics(
    statistics: dict[str, int], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: bool(statistics), memory_stats=lambda: statistics
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert allocator_retries() == expected


def test_the_log_has_a_phase_without_length_when_there_are_more(tmp_path: Path) -> None:
    readings = iter([0, 2, 2, 5])
    file = StepLogFile(tmp_path / "log.jsonl")
    recorder = StepRecorder(file, HostClock(), lambda: 7, retries=lambda: next(readings))
    for number in range(1, 5):
        recorder.begin("here")
        recorder.end(number, 4, None, None, None)
    file.flush()
    lines = [json.loads(line) for line in file.path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["step", "step", "phase", "step", "step", "phase"]
    phases = [line for line in lines if line["kind"] == "phase"]
    assert [(each["name"], each["facts"]) for each in phases] == [
        (ALLOCATOR_RETRIES, {RETRIES: retries, IN_BACKGROUND: True}) for retries in (2, 5)
    ]
    assert all(each["begin"] == each["end"] for each in phases)
