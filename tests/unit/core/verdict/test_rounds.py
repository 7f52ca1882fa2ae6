"""Rounds: the grid at once, or a race round by round; what is lost comes again, but not forever."""

from dataclasses import replace
from decimal import Decimal

from tests.unit.run_samples import completed_results, failed_result, make_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import GoalKind, Jobs, Search, Strategy
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Measurement, Run, Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round

STRATEGIES = (Strategy.DDP, Strategy.FSDP, Strategy.ZERO1)
# fsdp is behind by 3 %, which three trials of this spread do not show and twelve would
OPEN = ([1.00, 1.02, 1.01], [1.03, 1.05, 1.02], [2.0])


def suite_of(trials: int = 6, goal: Goal | None = None) -> Suite:
    return make_suite(
        goal=goal,
        training={"instance": "ml.p4d.24xlarge"},
        matrix={"strategy": STRATEGIES},
        search=Search.RACE,
        measurement=Measurement(trials=trials, jobs=Jobs.SEPARATE),
    )


def labelled(runs: tuple[Run, ...]) -> list[tuple[str, int]]:
    return [(run.cell.label, run.trial) for run in runs]


def results_of(suite: Suite, *seconds: list[float]) -> list[RunResult]:
    return completed_results(suite.cells, *seconds, suite=suite)


def next_round(suite: Suite, results: list[RunResult], number: int = 2) -> list[tuple[str, int]]:
    return labelled(
        plan_round(suite, suite.cells, execution_id="e", round_number=number, results=results)
    )


def test_a_grid_is_one_round() -> None:
    suite = replace(suite_of(trials=2), search=Search.GRID)
    cells = suite.cells
    runs = labelled(plan_round(suite, cells, execution_id="e", round_number=1))
    assert [sorted(runs[:3]), sorted(runs[3:])] == [
        [("ddp", 1), ("fsdp", 1), ("zero1", 1)],
        [("ddp", 2), ("fsdp", 2), ("zero1", 2)],
    ]
    assert plan_round(suite, cells, execution_id="e", round_number=2) == ()


def test_a_search_with_failures_only_is_over() -> None:
    suite = suite_of()
    results = [
        failed_result(cell, trial, Outcome.IMAGE_ERROR) for cell in suite.cells for trial in (1, 2)
    ]
    assert next_round(suite, results) == []


def test_a_cell_possibly_within_the_limit_stays() -> None:
    # 100,000 samples at 8 a step: 12,500 steps; ddp takes 3.5 h, fsdp nearly the limit of 4.15 h,
    # zero1 7 h
    goal = Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal("4.15"))
    suite = suite_of(goal=goal)
    results = results_of(suite, [1.00, 1.02, 1.01], [1.15, 1.19, 1.16], [2.00, 2.02, 2.01])
    verdict = judge(suite, suite.cells, results)
    assert set(verdict.refused) == {cell.cell_id for cell in suite.cells[1:]}
    assert sorted(label for label, _ in next_round(suite, results)) == ["ddp", "fsdp"]


def test_the_same_results_give_the_same_round() -> None:
    suite = suite_of()
    results = results_of(suite, [1.00, 1.05], [1.03, 1.00], [1.40, 1.45])
    assert next_round(suite, results) == next_round(suite, list(reversed(results)))


def test_a_lost_trial_comes_again_instead_of_an_existing_one() -> None:
    suite = suite_of()
    lost = [
        result
        for result in results_of(suite, *OPEN)
        if (result.run.cell.label, result.run.trial) != ("ddp", 1)
    ]
    assert sorted(next_round(suite, lost)) == [("ddp", 1), ("fsdp", 4)]


def test_a_result_lost_in_every_round_does_not_keep_the_search_going() -> None:
    suite = suite_of()
    lost = [
        result
        for result in results_of(suite, *OPEN)
        if (result.run.cell.label, result.run.trial) != ("ddp", 1)
    ]
    # A race that loses nothing has six rounds at most; a race that loses results has twice as many.
    goes_on = [bool(next_round(suite, lost, number=number)) for number in range(2, 15)]
    assert goes_on == [True] * 11 + [False] * 2
