"""A group of processes whose memory is measured: its answer is the highest peak, and none outlives the measurement."""

import subprocess
import sys
from typing import Any

import pytest

from bench import sharded_model

ANSWER = "print('[{}, {}]')"
JOB = {"values": {"strategy": "fsdp"}}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list["subprocess.Popen[str]"]:
    """Each rank runs the program of its number in ``JOB``."""
    group: list[subprocess.Popen[str]] = []

    def start(rank: int, _processes: int, _port: int, job: dict[str, Any]) -> "subprocess.Popen[str]":
        command = [sys.executable, "-S", "-c", job["programs"][rank]]
        group.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return group[-1]

    monkeypatch.setattr(sharded_model, "_start", start)
    return group


def test_the_process_that_needs_the_most_counts(started: list["subprocess.Popen[str]"]) -> None:
    programs = [ANSWER.format(10, 30), ANSWER.format(20, 25)]
    assert sharded_model._run(2, **JOB, programs=programs) == (20, 30)


def test_a_process_that_fails_is_named_with_its_last_words(started: list["subprocess.Popen[str]"]) -> None:
    programs = [ANSWER.format(10, 30), "raise SystemExit('out of memory')"]
    with pytest.raises(RuntimeError, match=r"a process of .*fsdp.* ended with 1: out of memory"):
        sharded_model._run(2, **JOB, programs=programs)


def test_no_process_outlives_a_group_that_takes_too_long(
    started: list["subprocess.Popen[str]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded_model, "LIMIT_SECONDS", 0.1)
    with pytest.raises(subprocess.TimeoutExpired):
        sharded_model._run(2, **JOB, programs=["import time; time.sleep(60)"] * 2)
    assert [process.returncode for process in started] == [-9, -9]
