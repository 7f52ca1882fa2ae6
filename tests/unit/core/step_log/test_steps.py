"""The columns of a process's steps give back each step, in the memory of four numbers."""

import random
import tracemalloc

import pytest

from traindyno.core.step_log.steps import LoggedStep, Steps

MOST_BYTES = 40  # begin, end, wait and loss take 32; the rest is space to grow


def steps_of(source: random.Random, count: int) -> list[LoggedStep]:
    """Numbers that rise, some of them left out, and values of which some repeat."""
    numbers = sorted(source.sample(range(3 * count), count)) if source.random() < 0.5 else range(5, 5 + count)
    return [
        LoggedStep(
            step=number,
            begin=float(index),
            end=index + source.random(),
            wait_seconds=source.random(),
            samples=source.choice([7, 8]),
            tokens=source.choice([None, 40, 41]),
            loss=source.choice([None, float("inf"), 1.5]),
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
        assert list(steps.waits) == [step.wait_seconds for step in expected]
        assert list(steps.losses) == [step.loss for step in expected]
        assert list(steps.samples) == [step.samples for step in expected]
        assert list(steps.tokens) == [step.tokens for step in expected]
        peaks = [step.peak_memory_bytes for step in expected if step.peak_memory_bytes]
        assert steps.peak_memory_bytes == max(peaks, default=None)
        numbers = sorted(source.sample(steps.numbers, source.randint(0, len(expected))))
        assert list(steps.numbered(numbers)) == [step for step in expected if step.step in numbers]


def test_a_step_takes_the_memory_of_four_numbers() -> None:
    tracemalloc.start()
    steps = Steps(
        LoggedStep(number, number / 7, (number + 1) / 7, number / 9, 8, 4096, 1 / (number + 1), 10**10)
        for number in range(50_000)
    )
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < MOST_BYTES * len(steps)
