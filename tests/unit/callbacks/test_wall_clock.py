"""A jump of the wall clock while a run is logged."""

import time
from pathlib import Path

import pytest

from traindyno.callbacks.log import StepLogger
from traindyno.core.measurement.throughput import measure_table
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

HOUR = 3600.0


@pytest.mark.parametrize("jump_seconds", [HOUR, -HOUR])
def test_a_jump_of_the_wall_clock_does_not_change_the_step_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_seconds: float
) -> None:
    logger = StepLogger(str(tmp_path))
    monotonic, wall = [time.perf_counter()], [time.time()]
    monkeypatch.setattr(time, "perf_counter", lambda: monotonic[0])
    monkeypatch.setattr(time, "time", lambda: wall[0])
    for step in range(40):
        with logger.step(samples=8):
            monotonic[0] += 0.5
            wall[0] += 0.5 + (jump_seconds if step == 20 else 0.0)
    logger.close()
    files = {path.name: path.read_text().splitlines() for path in tmp_path.glob("*/rank-*.jsonl")}
    session = read_step_log(files).measured
    assert session is not None
    found = measure_table(tabulate_steps(session), warmup_steps=None)
    assert found.seconds == pytest.approx(0.5)
    assert found.steady_state.is_reached
