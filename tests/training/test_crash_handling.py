"""What a process that fails after another one writes of the cause."""

import json
import os
import signal
from pathlib import Path

import pytest
import torch
from transformers import Mistral4ForSequenceClassification

from tests.training.small_models import small_config
from traindyno.callbacks import StepLogger, failure
from traindyno.callbacks.failure import count_oom_kills
from training.checkpoints.stop_request import StopRequest
from training.process.process_group import Topology
from training.run import crash_handling
from training.run.crash_handling import CrashHandler


class Exited(Exception):
    """It is raised in place of the process's end."""


def exit_of_a_test(exit_code: int) -> None:
    raise Exited(exit_code)


def handler_of(folder: Path, processes: int = 2) -> CrashHandler:
    """The handler of the last rank."""
    topology = Topology(rank=processes - 1, world_size=processes)
    return CrashHandler(
        StepLogger(str(folder), otherwise="internal_error"), topology, StopRequest(Topology())
    )


def fail_with(error: Exception, folder: Path) -> dict[str, str]:
    """The line that rank 1 writes of its error."""
    handler = handler_of(folder)
    with pytest.raises(Exited):
        handler._on_error(type(error), error, None)
    return error_line(folder)


def stop(handler: CrashHandler, folder: Path) -> dict[str, str]:
    """The line that a rank writes when SIGTERM has arrived."""
    receiving, sending = os.pipe()
    os.write(sending, bytes([signal.SIGTERM]))
    with pytest.raises(Exited):
        handler._end_on_sigterm(receiving)
    return error_line(folder)


def error_line(folder: Path) -> dict[str, str]:
    (log,) = folder.rglob("*.jsonl")
    (line,) = [
        line for line in map(json.loads, log.read_text().splitlines()) if line["kind"] == "error"
    ]
    return dict(line)


@pytest.fixture(autouse=True)
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SM_OUTPUT_DIR", str(tmp_path))
    monkeypatch.setattr(crash_handling, "exit_now", exit_of_a_test)


def test_an_error_after_another_processs_failure_is_its_consequence(tmp_path: Path) -> None:
    failure.report_failure("out_of_memory", "rank 0: MemoryError: no memory")
    line = fail_with(OSError("the tokenizer's folder is gone"), tmp_path / "log")
    assert line["outcome"] == "out_of_memory"
    assert "rank 0: MemoryError: no memory" in line["message"]


def test_the_first_error_is_the_cause(tmp_path: Path) -> None:
    line = fail_with(ValueError("expected a number"), tmp_path / "log")
    assert line["outcome"] == "internal_error"
    assert "ValueError: expected a number" in line["message"]
    assert failure.reported_failure()[0] == "internal_error"


@pytest.mark.parametrize(
    ("raised", "outcome"), [(RuntimeError, "user_code_error"), (OSError, "internal_error")]
)
def test_an_error_of_transformers_code_for_a_model_is_the_models(
    raised: type[Exception], outcome: str, tmp_path: Path
) -> None:
    """Of a configuration whose heads rotate other numbers of values than they have."""
    model = Mistral4ForSequenceClassification(small_config("mistral4"))
    tokens = torch.ones(1, 8, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="must match the size") as failed:
        model(input_ids=tokens)
    error = raised(str(failed.value)).with_traceback(failed.value.__traceback__)
    line = fail_with(error, tmp_path / "log")
    assert line["outcome"] == outcome
    of_model = "transformers' code of the model, modeling_mistral4.py, failed: RuntimeError"
    assert (of_model in line["message"]) == (outcome == "user_code_error")


@pytest.mark.parametrize(("processes", "outcome"), [(2, "out_of_memory"), (1, "stopped_by_user")])
def test_processes_stopped_after_the_kernel_killed_a_peer_are_out_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int, outcome: str
) -> None:
    """A process without peers is stopped by a person, whatever else the machine's kernel has
    killed.
    """
    handler = handler_of(tmp_path / "log", processes)
    kills = count_oom_kills()
    monkeypatch.setattr(crash_handling, "count_oom_kills", lambda: kills + 1)
    assert stop(handler, tmp_path / "log")["outcome"] == outcome


def test_a_stop_without_a_cause_among_the_peers_is_the_persons(tmp_path: Path) -> None:
    assert stop(handler_of(tmp_path / "log"), tmp_path / "log")["outcome"] == "stopped_by_user"
