"""The mean time of a step and its wait for data, from logs of which the truth is known."""

import json
from collections.abc import Mapping

import pytest

from tests.unit.step_log_samples import file_name, log_lines
from traindyno.core.measurement.measured_run import measure_run
from traindyno.core.measurement.step_parts import PartSeconds, StepParts, mean_parts
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

STEPS = 400
WARM_UP = 10


def parts_of(files: Mapping[str, list[str]]) -> StepParts:
    log = read_step_log(files)
    assert log.measured is not None
    table = tabulate_steps(log.measured)
    parts = measure_run(
        log, log.measured, table, warmup_steps=WARM_UP, peak_flops_per_device=None
    ).step_parts
    assert parts is not None
    return parts


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
    for document in lines:
        if document["kind"] == "step":
            document["wait_seconds"] = max(0.0, document["end"] - document["begin"] - 0.1)
    parts = parts_of({file_name(): [json.dumps(document) + "\n" for document in lines]})
    # 40 ms of 140 ms
    assert parts.share(parts.waiting) == pytest.approx(0.04 / 0.14, abs=0.02)


@pytest.mark.parametrize("world_size", [1, 3])
def test_the_wait_is_a_share_of_the_step(world_size: int) -> None:
    files = {
        file_name(rank): log_lines(
            rank=rank, world_size=world_size, step_seconds=[0.1] * STEPS, wait_seconds=0.04
        )
        for rank in range(world_size)
    }
    parts = parts_of(files)
    assert parts.step.mean == pytest.approx(0.1)
    assert parts.waiting.mean == pytest.approx(0.04)
    assert parts.share(parts.waiting) == pytest.approx(0.4)


def test_a_cell_has_the_mean_step_and_share_of_its_trials() -> None:
    first = parts_of({file_name(): log_lines(step_seconds=[0.1] * STEPS, wait_seconds=0.02)})
    second = parts_of({file_name(): log_lines(step_seconds=[0.3] * STEPS, wait_seconds=0.04)})
    mean = mean_parts([first, second])
    assert mean is not None
    # 0.02 of 0.1 and 0.04 of 0.3
    share = (0.2 + 0.04 / 0.3) / 2
    assert (mean.step.mean, mean.share(mean.waiting)) == pytest.approx((0.2, share))
    assert mean_parts([second]) == second
    assert mean_parts([]) is None


def test_the_error_of_a_mean_of_two_is_smaller_by_the_root_of_two() -> None:
    part = PartSeconds(mean=1.0, error=0.2)
    parts = StepParts(step=part, waiting=part)
    mean = mean_parts([parts, parts])
    assert mean is not None
    assert mean.waiting.error == pytest.approx(0.2 / 2**0.5)
