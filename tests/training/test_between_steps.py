"""Optimizer steps between the logged ones are counted, whatever the loop looks like."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from traindyno.callbacks.log import StepLogger
from traindyno.core.measurement.measured_run import measure_run
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.step_log.unknown_work import count_unlogged, describe_unknown_work
from traindyno.parent.step_times import RunLogs

BATCH = torch.randn(4, 2)


class Loop:
    """A script's training: how many optimizers there are, where they step, and how often a step is
    logged.
    """

    def __init__(
        self, folder: Path, optimizers: int, every: int, steps_inside: bool, phases: bool
    ) -> None:
        self.log = StepLogger(str(folder))
        models = [torch.nn.Linear(2, 1) for _ in range(optimizers)]
        self.trained = [(model, torch.optim.SGD(model.parameters(), lr=0.1)) for model in models]
        self.every = every
        self.steps_inside = steps_inside
        self.phases = phases

    def train(self, steps: int) -> None:
        for number in range(steps):
            if number % self.every:
                self.step()
                continue
            if self.phases and number:
                with self.log.phase("evaluate"):
                    self.step()  # of a phase, whose time is in the log
            with self.log.step(batch=BATCH):
                if self.steps_inside:
                    self.step()
            if not self.steps_inside:
                self.step()
        self.log.close()

    def step(self) -> None:
        for model, optimizer in self.trained:
            model(BATCH).sum().backward()
            optimizer.step()
            optimizer.zero_grad()


def logged(folder: Path) -> tuple[Any, RunLogs]:
    files = list(folder.glob("*/rank-*.jsonl"))
    logs = RunLogs(files[0].parent, hosts=1)
    logs.read_new()
    return read_step_log({path.name: path.read_text().splitlines() for path in files}), logs


@pytest.mark.parametrize("seed", range(8))
def test_a_log_without_some_steps_shows_no_rate(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    every = draw.choice([1, 2, 9])
    optimizers = draw.choice([1, 2, 3])
    inside = draw.random() < 0.5
    phases = draw.random() < 0.5
    Loop(tmp_path, optimizers, every, inside, phases).train(25 * every)
    log, of_parent = logged(tmp_path)
    session = log.measured
    # what is done after the last logged step belongs to no step
    between = 24 * (every - 1)
    assert count_unlogged(session) == between
    table = tabulate_steps(session)
    assert table is not None
    measured = measure_run(log, session, table, warmup_steps=2, peak_flops_per_device=None)
    assert (measured.throughput is None) == (of_parent.steps() is None) == (every > 1)
    if every > 1:
        assert f"the optimizer did {between:,} steps between the 25 logged ones" in (
            describe_unknown_work(session) or ""
        )


def test_accumulated_batches_logged_one_by_one_lack_no_step(tmp_path: Path) -> None:
    loop = Loop(tmp_path, 1, 1, False, False)
    for number in range(40):
        with loop.log.step(batch=BATCH):
            pass
        if number % 4 == 3:
            loop.step()
    loop.log.close()
    assert count_unlogged(logged(tmp_path)[0].measured) == 0


def test_a_second_model_trained_between_the_steps_is_no_missing_step(
    tmp_path: Path,
) -> None:
    """Five steps of a critic before each logged step of the generator: the time of all is in the
    log.
    """
    loop = Loop(tmp_path, 2, 1, True, False)
    generator, critic = loop.trained
    for _ in range(20):
        loop.trained = [critic]
        for _ in range(5):
            loop.step()
        loop.trained = [generator]
        with loop.log.step(batch=BATCH):
            loop.step()
    loop.log.close()
    assert count_unlogged(logged(tmp_path)[0].measured) == 0


def test_a_log_says_so_before_its_process_is_killed(tmp_path: Path) -> None:
    loop = Loop(tmp_path, 1, 3, True, False)
    loop.log.close = lambda: None  # type: ignore[method-assign]
    loop.train(90)
    loop.log.flush()
    assert count_unlogged(logged(tmp_path)[0].measured) > 40


def test_a_main_process_loading_its_data_computes_during_its_wait(tmp_path: Path) -> None:
    log = StepLogger(str(tmp_path))
    for _ in range(10):
        sum(range(300_000))
        with log.step(batch=BATCH):
            pass
    log.close()
    (path,) = tmp_path.glob("*/rank-*.jsonl")
    (facts,) = [
        line["facts"] for line in map(json.loads, path.open()) if line.get("name") == "teardown"
    ]
    assert facts["unlogged_steps"] == 0
    assert 0 < facts["cpu_seconds"] <= 1.1 * facts["wait_seconds"]
