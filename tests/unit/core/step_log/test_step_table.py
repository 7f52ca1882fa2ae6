import pytest

from traindyno.core.step_log.fields import LoggedPhase
from traindyno.core.step_log.line import LoggedStep
from traindyno.core.step_log.step_table import RankSteps, StepTable
from traindyno.core.step_log.steps import Steps


def step(number: int, wait_seconds: float) -> LoggedStep:
    """A step of one second; steps follow on each other."""
    return LoggedStep(number, float(number), number + 1.0, wait_seconds, 8, None, None, None)


def rank_steps(*phases: tuple[float, float]) -> RankSteps:
    """Three steps, each of which waits for its first half second."""
    steps = [step(number, 0.5) for number in range(3)]
    return RankSteps(
        rank=0,
        steps=Steps(steps),
        phases=[
            LoggedPhase(name="evaluate", begin=begin, end=end, facts={}) for begin, end in phases
        ],
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
def test_phases_within_a_wait_do_not_count_as_waiting(
    phases: list[tuple[float, float]], seconds: float
) -> None:
    assert rank_steps(*phases).wait_seconds(0, 2) == pytest.approx(seconds)


def test_only_the_steps_asked_for_are_counted() -> None:
    assert rank_steps((1.1, 1.3)).wait_seconds(1, 1) == pytest.approx(0.3)


def two_ranks() -> StepTable:
    """Steps of 1, 2 and 1 s on rank 0, of 2, 1 and 1 s on rank 1, and a save of each between the
    second and third.
    """
    ranks = []
    for rank, seconds in enumerate(((1.0, 2.0, 1.0), (2.0, 1.0, 1.0))):
        first, second, third = seconds
        begins = (0.0, first, first + second + 1.0)
        steps = [
            LoggedStep(number, begin, begin + length, 0.25, 8, 10 * (number + 1), None, None)
            for number, begin, length in zip(range(3), begins, (first, second, third), strict=True)
        ]
        save = LoggedPhase(name="save", begin=3.0, end=3.5 + rank / 4, facts={})
        ranks.append(RankSteps(rank=rank, steps=Steps(steps), phases=[save]))
    return StepTable(numbers=[0, 1, 2], ranks=ranks)


def test_the_columns_of_a_table_are_over_all_ranks() -> None:
    table = two_ranks()
    assert len(table) == 3
    assert list(table.slowest_seconds) == [2.0, 2.0, 1.0]
    # the second between the steps belongs to the last interval, of which the slower save took 0.75
    # s
    assert list(table.interval_seconds) == [2.0, 2.0, 2.0]
    assert table.phases_by_interval == {2: {"save": 0.75}}
    assert list(table.step_seconds) == [2.0, 2.0, 1.25]
    assert (table.samples, table.tokens) == ([16, 16, 16], [20, 40, 60])
    assert table.wall_seconds(0, 2) == 5.0
    assert table.wall_seconds(1, 2) == 4.0
    # three waits of 0.25 s on each of two ranks of 5 s
    assert table.wait_share(0, 2) == pytest.approx(0.15)
    assert table.phases_after_steps() == frozenset()


def test_a_phase_over_several_intervals_is_divided_between_them() -> None:
    steps = [step(number, 0.0) for number in range(4)]
    rank = RankSteps(
        rank=0, steps=Steps(steps), phases=[LoggedPhase(name="save", begin=0.5, end=2.25, facts={})]
    )
    assert rank.phases_by_interval() == {0: {"save": 0.5}, 1: {"save": 1.0}, 2: {"save": 0.25}}
    twice = [
        LoggedPhase(name="save", begin=begin, end=begin + 0.25, facts={}) for begin in (1.0, 1.5)
    ]
    assert RankSteps(rank=0, steps=Steps(steps), phases=twice).phases_by_interval() == {
        1: {"save": 0.5}
    }


def test_phases_beginning_at_the_end_of_the_last_step_are_after_the_steps() -> None:
    steps = [step(number, 0.0) for number in range(2)]
    phases = [
        LoggedPhase(name=name, begin=begin, end=3.0, facts={})
        for name, begin in (("save", 2.0), ("load", 1.9))
    ]
    table = StepTable(numbers=[0, 1], ranks=[RankSteps(rank=0, steps=Steps(steps), phases=phases)])
    assert table.phases_after_steps() == {"save"}


def test_tokens_not_counted_in_one_step_are_unknown() -> None:
    steps = [step(0, 0.0)._replace(tokens=5), step(1, 0.0)]
    assert (
        StepTable(numbers=[0, 1], ranks=[RankSteps(rank=0, steps=Steps(steps), phases=[])]).tokens
        is None
    )
