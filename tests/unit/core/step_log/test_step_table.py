import pytest

from traindyno.core.step_log.content import Phase, Step
from traindyno.core.step_log.step_table import RankSteps


def step(number: int, wait_seconds: float) -> Step:
    """Of one second; they follow on each other."""
    return Step(number, float(number), number + 1.0, wait_seconds, 8, None, None, None, None)


def rank_steps(*phases: tuple[float, float]) -> RankSteps:
    """Three steps, each of which waits for its first half second."""
    steps = [step(number, 0.5) for number in range(3)]
    return RankSteps(
        rank=0, steps=steps, phases=[Phase(name="evaluate", begin=begin, end=end, facts={}) for begin, end in phases]
    )


@pytest.mark.parametrize(
    ("phases", "seconds"),
    [
        ([], 1.5),
        ([(1.1, 1.3)], 1.3),  # within one wait
        ([(1.3, 1.9)], 1.3),  # longer than the wait that it began in
        ([(0.25, 2.25)], 0.5),  # over three waits: 0.25, 0.5 and 0.25 s of them
        ([(1.6, 1.9)], 1.5),  # between two waits
    ],
)
def test_phases_within_a_wait_do_not_count_as_waiting(phases: list[tuple[float, float]], seconds: float) -> None:
    assert rank_steps(*phases).wait_seconds(0, 2) == pytest.approx(seconds)


def test_only_the_steps_asked_for_are_counted() -> None:
    assert rank_steps((1.1, 1.3)).wait_seconds(1, 1) == pytest.approx(0.3)
