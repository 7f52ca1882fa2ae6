"""The parts of a step from logs of which the truth is known."""

import json
from collections.abc import Mapping
from random import Random
from statistics import stdev
from typing import Any

import pytest

from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.measurement.measured_run import measure_run
from traindyno.core.measurement.step_parts import PartSeconds, StepParts, mean_parts
from traindyno.core.step_log import line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

STEPS, PROBE_STEPS, WARM_UP = 400, 20, 10
NAMES = ("data", "communication", "optimizer", "compute")
Truth = Mapping[str, float]


def measured_parts(
    truth: Truth,
    *,
    world_size: int,
    noise: float = 0.0,
    has_exchange: bool = True,
    seed: int = 0,
    slower: float = 1.0,
    round_noise: float = 0.0,
) -> StepParts:
    """Each time varies by ``noise``, a share of the step, and the mean of each probe's round by
    ``round_noise``.

    ``slower``: the probes' time, relative to the run's.
    """
    random, whole = Random(seed), sum(truth.values())

    def times(count: int, *left_out: str) -> list[float]:
        mean = whole - sum(truth[name] for name in left_out) + random.gauss(0, round_noise * whole)
        return [max(1e-6, random.gauss(mean, noise * whole)) for _ in range(count)]

    files = {}
    for rank in range(world_size):
        left_out = {
            line.WHOLE_STEP: [],
            line.HELD_BATCHES: ["data"],
            line.NO_EXCHANGE: ["data", "communication"],
        }
        left_out[line.NO_OPTIMIZER] = [
            "data",
            *(["communication"] if has_exchange else []),
            "optimizer",
        ]
        if world_size == 1 or not has_exchange:
            del left_out[line.NO_EXCHANGE]
        order = [*left_out, *reversed(left_out)]
        probes = [(name, times(PROBE_STEPS // 2, *left_out[name])) for name in order]
        files[file_name(rank)] = log_lines(
            rank=rank,
            world_size=world_size,
            step_seconds=times(STEPS),
            wait_seconds=truth["data"],
            after=[
                probe_line(name, [each * slower for each in seconds]) for name, seconds in probes
            ],
        )
    return parts_of(files)


def probe_line(name: str, seconds: Any) -> dict[str, Any]:
    end = START + 10_000
    return line.phase_line(
        line.PROBE, end, end + 1, {line.PROBED: name, line.STEP_SECONDS: seconds}
    )


def parts_of(files: Mapping[str, list[str]]) -> StepParts:
    log = read_step_log(files)
    assert log.measured is not None
    table = tabulate_steps(log.measured)
    parts = measure_run(
        log, log.measured, table, warmup_steps=WARM_UP, peak_flops_per_device=None
    ).step_parts
    assert parts is not None
    return parts


def truths() -> list[Truth]:
    random = Random(20261123)
    return [{name: random.uniform(0.0, 0.2) for name in NAMES} for _ in range(8)]


@pytest.mark.parametrize(("world_size", "slower"), [(1, 1.0), (2, 1.0), (3, 1.4), (2, 0.7)])
@pytest.mark.parametrize("truth", truths())
def test_parts_without_noise_are_the_truth(truth: Truth, world_size: int, slower: float) -> None:
    """Also on a host that is busier or quieter during the probes."""
    if world_size == 1:
        truth = {**truth, "communication": 0.0}
    parts = measured_parts(truth, world_size=world_size, slower=slower)
    for name in NAMES:
        assert getattr(parts, name).mean == pytest.approx(truth[name], abs=1e-6), name
    assert parts.waiting.mean == pytest.approx(truth["data"])
    assert parts.step.mean == pytest.approx(sum(truth.values()))


def test_a_wait_within_a_stall_is_no_more_than_the_whole_step() -> None:
    """A step of the log has the wait of 2 s once in 50 steps; the time of a step is without such
    stalls.
    """
    lines = [
        json.loads(text)
        for text in log_lines(
            step_seconds=[2.1 if step % 50 == 40 else 0.1 for step in range(STEPS)]
        )
    ]
    for each in lines:
        if each["kind"] == "step":
            each["wait_seconds"] = max(0.0, each["end"] - each["begin"] - 0.1)
    parts = parts_of({file_name(): [json.dumps(each) + "\n" for each in lines]})
    # 40 ms of 140 ms
    assert parts.share(parts.waiting) == pytest.approx(0.04 / 0.14, abs=0.02)


def test_without_a_probe_of_the_exchange_it_is_unknown_and_so_is_the_rest() -> None:
    truth = {"data": 0.03, "communication": 0.02, "optimizer": 0.01, "compute": 0.06}
    parts = measured_parts(truth, world_size=2, has_exchange=False)
    assert (parts.communication, parts.compute) == (None, None)
    assert parts.optimizer is not None
    assert parts.optimizer.mean == pytest.approx(truth["optimizer"])


def test_a_log_without_probes_has_the_wait_only() -> None:
    parts = parts_of({file_name(): log_lines(step_seconds=[0.1] * STEPS, wait_seconds=0.04)})
    assert not parts.is_probed
    assert parts.share(parts.data) == parts.share(parts.waiting) == pytest.approx(0.4)
    assert (parts.communication, parts.optimizer, parts.compute) == (None, None, None)


@pytest.mark.parametrize(
    "seconds", ["long", [0.1], [0.1, "0.1"], [0.1, 0], [0.1, True], [0.1, float("nan")], None]
)
def test_a_probe_that_can_not_be_is_no_probe(seconds: Any) -> None:
    probes = [probe_line(line.WHOLE_STEP, [0.1, 0.1]), probe_line(line.HELD_BATCHES, seconds)]
    lines = log_lines(step_seconds=[0.1] * STEPS, after=probes)
    assert not parts_of({file_name(): lines}).is_probed


def test_a_probe_that_a_process_lacks_is_no_probe() -> None:
    files = {
        file_name(rank): log_lines(
            rank=rank,
            world_size=2,
            step_seconds=[0.1] * STEPS,
            after=[
                probe_line(name, [0.1] * PROBE_STEPS)
                for name in (line.WHOLE_STEP, line.HELD_BATCHES)
            ][: 2 - rank],
        )
        for rank in range(2)
    }
    assert not parts_of(files).is_probed


def test_a_cell_has_the_means_of_its_probed_trials() -> None:
    truth = {"data": 0.02, "communication": 0.0, "optimizer": 0.01, "compute": 0.05}
    first = measured_parts(truth, world_size=1)
    second = measured_parts({**truth, "data": 0.04}, world_size=1)
    unprobed = parts_of({file_name(): log_lines(step_seconds=[0.5] * STEPS)})
    mean = mean_parts([unprobed, first, None, second])
    assert mean is not None
    assert mean.is_probed
    assert mean.data.mean == pytest.approx(0.03, abs=1e-6)
    # Trials of 0.08, 0.10 and 0.50 s a step
    assert mean.step.error == pytest.approx(stdev([0.08, 0.10, 0.5]))
    assert mean_parts([None, unprobed]) == unprobed
    assert mean_parts([None]) is None


def test_the_error_of_a_mean_of_two_is_smaller_by_the_root_of_two() -> None:
    part = PartSeconds(mean=1.0, error=0.2)
    parts = StepParts(samples_per_step=8, step=part, waiting=part, data=part)
    mean = mean_parts([parts, parts])
    assert mean is not None
    assert mean.data.error == pytest.approx(0.2 / 2**0.5)
    assert part.minus(part).error == pytest.approx(0.2 * 2**0.5)
