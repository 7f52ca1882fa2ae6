"""Phases within phases: no second counts twice, whichever way they overlap."""

import pytest

from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.measurement.run_phases import measure_phases
from traindyno.core.step_log import line
from traindyno.core.step_log.fields import LoggedPhase
from traindyno.core.step_log.line import IN_BACKGROUND
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import phases_apart, tabulate_steps


def phase(name: str, begin: float, end: float, **facts: object) -> LoggedPhase:
    return LoggedPhase(name=name, begin=begin, end=end, facts=facts)


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([phase("a", 0, 2), phase("b", 3, 4)], [("a", 0, 2), ("b", 3, 4)]),
        (
            [phase("compile", 2, 5), phase("evaluate", 0, 9)],
            [("evaluate", 0, 2), ("compile", 2, 5), ("evaluate", 5, 9)],
        ),
        (
            [phase("compile", 0, 5), phase("evaluate", 0, 9)],
            [("compile", 0, 5), ("evaluate", 5, 9)],
        ),
        (  # within one that is within another, and twice
            [phase("c", 3, 4), phase("b", 2, 6), phase("c", 7, 8), phase("a", 0, 9)],
            [
                ("a", 0, 2),
                ("b", 2, 3),
                ("c", 3, 4),
                ("b", 4, 6),
                ("a", 6, 7),
                ("c", 7, 8),
                ("a", 8, 9),
            ],
        ),
        ([phase("a", 0, 5), phase("b", 3, 8)], [("a", 0, 3), ("b", 3, 8)]),
        ([phase("a", 0, 5), phase("b", 1, 9, **{IN_BACKGROUND: True})], [("a", 0, 5)]),
        ([phase("setup", 4, 4)], [("setup", 4, 4)]),
        ([], []),
    ],
)
def test_each_moment_is_in_the_latest_phase(
    phases: list[LoggedPhase], expected: list[tuple[str, float, float]]
) -> None:
    assert [(part.name, part.begin, part.end) for part in phases_apart(phases)] == expected


def test_a_compilation_within_an_evaluation_counts_once_in_the_interval_of_its_step() -> None:
    """Steps of 1 s; between the second and the third 10 s of evaluation, of which 4 s compile."""
    nested = [
        line.phase_line("compile", START + 3, START + 7),
        line.phase_line("evaluate", START + 2, START + 12),
    ]
    lines = log_lines(step_seconds=[1.0, 1.0], is_ended=False)
    lines += log_lines(step_seconds=[1.0, 1.0], first_step=2, start=START + 12, after=nested)[1:]
    log = read_step_log({file_name(0): lines})
    assert log.measured is not None
    table = tabulate_steps(log.measured)
    assert table.phases_by_interval == {
        2: {"evaluate": pytest.approx(6.0), "compile": pytest.approx(4.0)}
    }
    assert table.step_seconds == pytest.approx([1.0] * 4)
    seconds = measure_phases([], log.measured, table, warmup_steps=0)
    assert seconds["evaluate"] == pytest.approx(6.0)
    assert seconds["compile"] == pytest.approx(4.0)
    assert seconds["steady"] == pytest.approx(4.0)


def test_ranks_wait_for_the_slowest_phases_and_not_for_their_sum() -> None:
    """Rank 0 compiles for 4 of 10 s of evaluation, rank 1 for 2 of 9 s."""
    ranks = {}
    for rank, (compiling, evaluating) in enumerate([(4, 10), (2, 9)]):
        nested = [
            line.phase_line("compile", START + 1, START + 1 + compiling),
            line.phase_line("evaluate", START + 1, START + 1 + evaluating),
        ]
        lines = log_lines(rank=rank, world_size=2, step_seconds=[1.0], is_ended=False)
        lines += log_lines(
            rank=rank,
            world_size=2,
            step_seconds=[1.0],
            first_step=1,
            start=START + 11,
            after=nested,
        )[1:]
        ranks[file_name(rank)] = lines
    log = read_step_log(ranks)
    assert log.measured is not None
    table = tabulate_steps(log.measured)
    assert table.phases_by_interval == {
        1: {"evaluate": pytest.approx(6.0), "compile": pytest.approx(4.0)}
    }
    assert table.step_seconds == pytest.approx([1.0, 1.0])
