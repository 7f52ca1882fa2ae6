"""A thinned log is measured in the steps that were logged, with the same rates and sums as a whole one."""

import json
import random
import re
from typing import Any

import pytest

from tests.unit.run_samples import make_suite, result_from
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.measurement.run_result import RunResult, parse_run_result, run_result_document
from traindyno.core.step_log import line, thinning
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.suite import Measurement, Suite
from traindyno.core.verdict.summarise import summarise

STEPS, EVERY, RANKS = 4000, 400, 2


def files() -> dict[str, list[str]]:
    """Two processes with noise in their steps, a checkpoint every 400 steps, and a slow begin."""
    found = {}
    for rank in range(RANKS):
        source = random.Random(5)  # the processes wait for each other in each step
        seconds = [(32 + source.randrange(3) + (32 if step < 40 else 0)) / 64 for step in range(STEPS)]
        lines, time = [], START
        for begin in range(0, STEPS, EVERY):
            part = log_lines(
                rank=rank,
                world_size=RANKS,
                first_step=begin + 1,
                step_seconds=seconds[begin : begin + EVERY],
                wait_seconds=0.01,
                tokens=64,
                loss=lambda index, begin=begin: 4.0 - (begin + index) / STEPS,  # type: ignore[misc]
                start=time,
            )
            time += sum(seconds[begin : begin + EVERY]) + 2.0
            checkpoint = line.phase_line(line.CHECKPOINT, time - 2.0, time, {"step": begin + EVERY})
            lines += [*part[begin > 0 : -1], f"{json.dumps(checkpoint)}\n"]
        found[file_name(rank)] = [*lines, part[-1]]
    return found


def result(logs: dict[str, list[str]], suite: Suite | None = None) -> RunResult:
    return result_from(read_step_log(logs), suite=suite or make_suite())


@pytest.fixture(scope="module")
def whole() -> RunResult:
    return result(files())


@pytest.fixture(scope="module")
def thin() -> RunResult:
    return thinned_result(files(), most_steps=1000)


def thinned_result(logs: dict[str, list[str]], suite: Suite | None = None, *, most_steps: int) -> RunResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "MOST_STEPS", most_steps)
        return result(logs, suite)


def of_rate(found: RunResult) -> Any:
    assert found.measured
    assert found.measured.throughput
    return found.measured.throughput


def test_sums_of_the_run_are_the_same(whole: RunResult, thin: RunResult) -> None:
    assert whole.measured and thin.measured
    assert thin.measured.steps_done == whole.measured.steps_done == STEPS
    assert thin.measured.loss.points[-1].samples == whole.measured.loss.points[-1].samples == STEPS * RANKS * 8
    assert sum(point.steps for point in thin.measured.loss.points) == STEPS
    assert thin.measured.checkpoints == whole.measured.checkpoints
    assert thin.measured.began_at == whole.measured.began_at
    assert thin.measured.peak_memory_bytes == whole.measured.peak_memory_bytes
    assert thin.phases_seconds == pytest.approx(whole.phases_seconds, abs=0.5 * 4 * 20)


def test_rates_and_times_of_a_step_are_those_of_the_whole_log(whole: RunResult, thin: RunResult) -> None:
    expected, found = of_rate(whole), of_rate(thin)
    for name in ("samples_per_second", "tokens_per_second", "steps_per_second", "data_wait_share", "recurring_share"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=0.005), name
    assert found.step_times.mean_seconds == pytest.approx(expected.step_times.mean_seconds, rel=0.005)
    assert found.samples_per_step == expected.samples_per_step
    assert found.steps == pytest.approx(expected.steps, abs=20)
    assert found.samples == found.steps * RANKS * 8
    assert summarise(thin).mean_step_seconds == pytest.approx(summarise(whole).mean_step_seconds, rel=0.005)


def test_what_counts_steps_counts_those_that_were_logged(whole: RunResult, thin: RunResult) -> None:
    assert whole.measured and thin.measured
    assert thin.measured.steady_state.warmup_steps == pytest.approx(whole.measured.steady_state.warmup_steps, abs=20)
    for each in (whole.measured, thin.measured):
        (event,) = [event for event in each.recurring if event.name == line.CHECKPOINT]
        assert event.steps_between == EVERY
        assert event.seconds == pytest.approx(2.0, abs=0.1)
        assert len(each.timeline.seconds) * each.timeline.stride == pytest.approx(STEPS, rel=0.02)
        assert each.timeline.seconds[-1] == pytest.approx(0.5156, abs=0.02)
    assert "each 4 neighbouring ones" in " ".join(thin.step_log_problems)


def test_the_result_is_stored_and_read(thin: RunResult) -> None:
    assert parse_run_result(run_result_document(thin)) == thin


@pytest.mark.parametrize("reached", [200, 203])
@pytest.mark.parametrize("resumed", range(195, 202))
def test_a_restart_counts_no_step_twice(reached: int, resumed: int) -> None:
    later, stride = START + 1000, 4
    logs = {
        file_name(): log_lines(step_seconds=[1.0] * reached, first_step=1, is_ended=False),
        file_name(start=later): log_lines(step_seconds=[1.0] * (501 - resumed), first_step=resumed, start=later),
    }
    whole, thin = result(logs).measured, thinned_result(logs, most_steps=100).measured
    assert whole and thin and whole.repeated_steps is not None
    assert whole.steps_done == 500
    in_group = (resumed - 1) % stride  # the kept steps of the group in which the run resumed
    assert (thin.steps_done, thin.repeated_steps) == (500 - in_group, whole.repeated_steps + in_group)
    assert thin.loss.points[-1].samples == whole.loss.points[-1].samples - 8 * in_group
    assert [gap.repeated_steps for gap in thin.gaps] == [gap.repeated_steps for gap in whole.gaps]


def noisy(steps: int, changes: dict[int, int]) -> list[float]:
    """Steps of about 0.5 s. ``changes``: first step → what is added from it on, in 1/64 s."""
    source = random.Random(7)
    return [
        (32 + source.randrange(3) + sum(more for first, more in changes.items() if step >= first)) / 64
        for step in range(steps)
    ]


CHANGES = {
    "after the given warm-up": ({200: 8}, 10, "step times change at step 201,"),
    "late": ({360: 8}, None, "still changed at step 361 of 400; 40 steps after it"),
    "warm-up is the whole run": ({}, 400, "400 steps ran and the suite's warm-up takes 400"),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_reasons_name_steps_as_logged(name: str) -> None:
    """The log's first step is number 1, so that the 201st, with which the change begins, is number 201."""
    changes, warmup_steps, expected = CHANGES[name]
    logs = {file_name(): log_lines(step_seconds=noisy(400, changes), first_step=1)}
    suite = make_suite(measurement=Measurement(warmup_steps=warmup_steps))
    for found in (result(logs, suite), thinned_result(logs, suite, most_steps=100)):
        assert found.measured
        steady = found.measured.steady_state
        assert re.search(expected, steady.reason or "")


@pytest.mark.parametrize("every", [1, 3, 10, 50])
def test_points_of_the_loss_count_the_steps_that_had_one(every: int) -> None:
    def loss(index: int) -> float | None:
        return 4.0 - index / 1000 if index % every == 0 else None

    logs = {
        file_name(rank): log_lines(
            rank=rank, world_size=2, step_seconds=[0.5] * 400, first_step=1, loss=(loss, lambda _: None)[rank]
        )
        for rank in range(2)
    }
    for found in (result(logs), thinned_result(logs, most_steps=100)):
        assert found.measured
        assert sum(point.steps for point in found.measured.loss.points) == len(range(0, 400, every))
