"""When lines reach the disk, and what becomes of them when they can't."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from traindyno.callbacks import clock, failure, recorder
from traindyno.callbacks.clock import HostClock
from traindyno.callbacks.environment import peak_memory_bytes
from traindyno.callbacks.log import StepLogger
from traindyno.callbacks.recorder import StepLogFile
from traindyno.core.jobs.outcome import Outcome


def test_lines_are_written_a_second_after_the_last_write_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [100.0]
    monkeypatch.setattr(recorder, "now", lambda: seconds[0])
    log = StepLogFile(tmp_path / "job" / "rank.jsonl")
    log.write({"kind": "step", "step": 1})
    seconds[0] = 100.9
    log.write({"kind": "step", "step": 2})
    assert not log.path.exists()
    seconds[0] = 101.0
    log.write({"kind": "step", "step": 3})
    assert [json.loads(line)["step"] for line in log.path.read_text().splitlines()] == [1, 2, 3]


def test_a_full_disk_is_an_error_of_the_run_with_its_name() -> None:
    log = StepLogFile(Path("/dev/full"))
    log.write({"kind": "step"})
    with pytest.raises(OSError, match="No space left on device") as caught:
        log.flush()
    assert caught.value.errno == errno.ENOSPC
    assert failure.classify(caught.value, Outcome.INTERNAL_ERROR) == Outcome.USER_CODE_ERROR
    assert "No space left on device" in failure.describe(caught.value, 0)


def test_sagemaker_reads_the_first_failure(tmp_path: Path) -> None:
    environment = {"SM_OUTPUT_DIR": str(tmp_path)}
    failure.report_failure("out_of_memory", "rank 1: full", environment)
    failure.report_failure("internal_error", "rank 0: lost a peer", environment)
    assert (tmp_path / "failure").read_text() == "traindyno-outcome: out_of_memory: rank 1: full"
    assert failure.reported_failure(environment) == ("out_of_memory", "rank 1: full")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), Outcome.OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), Outcome.OUT_OF_MEMORY),
        (MemoryError(), Outcome.OUT_OF_MEMORY),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), Outcome.USER_CODE_ERROR),
        (KeyboardInterrupt(), Outcome.STOPPED_BY_USER),
    ],
)
def test_errors_are_classified_by_their_text(error: BaseException, outcome: Outcome) -> None:
    assert failure.classify(error) == outcome


class TimedLog:
    """A step log whose clock stands still until ``seconds`` changes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 50.0
        self._folder = folder
        for module in ("clock", "log", "recorder"):
            monkeypatch.setattr(f"traindyno.callbacks.{module}.now", lambda: self.seconds)
        self.log = StepLogger(str(folder))
        self.log.measure_with(
            HostClock, peak_memory_bytes
        )  # an earlier test may have used a CUDA device

    def steps(self) -> list[dict[str, Any]]:
        self.log.close()
        (path,) = self._folder.glob("*/rank-*.jsonl")
        return [
            line
            for line in map(json.loads, path.read_text().splitlines())
            if line["kind"] == "step"
        ]


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimedLog:
    return TimedLog(tmp_path, monkeypatch)


def test_time_spent_in_a_phase_is_not_waiting_for_data(timed: TimedLog) -> None:
    for wait, has_phase in ((0.0, False), (0.5, False), (0.25, True)):
        if has_phase:
            with timed.log.phase("evaluate"):
                timed.seconds += 10.0
        timed.seconds += wait
        with timed.log.step(samples=1):
            timed.seconds += 1.0
    steps = timed.steps()
    assert [step["wait_seconds"] for step in steps] == [0.0, 0.5, 0.25]
    assert [step["begin"] for step in steps] == [50.0, 51.0, 62.5]
    assert clock.now() == timed.seconds


def test_waiting_for_the_device_to_tell_a_loss_is_not_waiting_for_data(timed: TimedLog) -> None:
    class LossOnTheDevice:
        def __float__(self) -> float:
            timed.seconds += 3.0
            return 1.0

    for _ in range(2):
        timed.seconds += 0.5
        with timed.log.step(samples=1) as step:
            timed.seconds += 1.0
            step.loss = LossOnTheDevice()
    steps = timed.steps()
    # 0.5 s for data and 1 s of work each; the 3 s before the first loss was known belong to the
    # second step
    assert [step["wait_seconds"] for step in steps] == [0.0, 0.5]
    assert [step["end"] - step["begin"] for step in steps] == [1.0, 4.5]
