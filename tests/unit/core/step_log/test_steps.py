"""The columns of a process's steps give back each step, up to a number of them."""

import random

import pytest

from tests.unit.step_log_samples import log_lines
from traindyno.core.step_log import steps as columns
from traindyno.core.step_log.line import LoggedStep
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.steps import Steps


def steps_of(source: random.Random, count: int) -> list[LoggedStep]:
    """Numbers that rise, some of them left out, values of which some repeat, and values that 4
    bytes hold or do not.
    """
    start = source.choice([0.0, 1.7e9])
    is_logged = source.random() < 0.5
    numbers = (
        sorted(source.sample(range(3 * count), count))
        if source.random() < 0.5
        else range(5, 5 + count)
    )
    return [
        LoggedStep(
            step=number,
            begin=start + index,
            end=start + index + (source.choice([0.25, 0.5]) if is_logged else source.random()),
            wait_seconds=0.125 if source.random() < 0.9 else source.random(),
            samples=source.choice([7, 8]),
            tokens=source.choice([None, 40, 41]),
            loss=source.choice(
                [None, float("inf"), 1.5, 1e-46, -1e39]
                if index > 20
                else [None, -float("inf"), 1.5]
            ),
            peak_memory_bytes=source.choice([None, 100, 200]),
        )
        for index, number in enumerate(numbers)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_columns_and_views_give_back_the_steps(seed: int) -> None:
    source = random.Random(seed)
    given = steps_of(source, source.randint(1, 40))
    first, end = sorted(source.randrange(len(given) + 1) for _ in range(2))
    for steps, expected in ((Steps(given), given), (Steps(given)[first:end], given[first:end])):
        assert list(steps) == expected
        assert list(steps.numbers) == [step.step for step in expected]
        assert list(steps.begins) == [step.begin for step in expected]
        assert list(steps.ends) == [step.end for step in expected]
        assert [steps.ends[index] for index in range(len(expected))] == [
            step.end for step in expected
        ]
        assert list(steps.ends[1:][:-1]) == [step.end for step in expected[1:-1]]
        assert list(steps.waits) == [step.wait_seconds for step in expected]
        assert list(steps.losses) == [step.loss for step in expected]
        assert list(steps.samples) == [step.samples for step in expected]
        assert list(steps.tokens) == [step.tokens for step in expected]
        peaks = [step.peak_memory_bytes for step in expected if step.peak_memory_bytes]
        assert steps.peak_memory_bytes == max(peaks, default=None)
        numbers = sorted(source.sample(steps.numbers, source.randint(0, len(expected))))
        assert list(steps.numbered(numbers)) == [step for step in expected if step.step in numbers]


def test_steps_beyond_the_most_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_STEPS", 10)
    log = read_step_log(
        {"job-a1/rank-00000.1790000000000.jsonl": log_lines(step_seconds=[0.5] * 30)}
    )
    assert log.measured is not None
    assert log.measured.common_steps == range(10)
    assert [problem for problem in log.problems if "steps; the later ones were left out" in problem]
