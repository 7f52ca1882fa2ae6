"""Search: the grid at once, or round by round without the cells that can no longer win."""

import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import GoalKind, OptimizerName, Search, Strategy
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Measurement, Run, StopWhen, Suite
from traindyno.core.verdict.rounds import plan_round
from traindyno.core.verdict.verdict import Finding, judge

STRATEGIES = (Strategy.DDP, Strategy.FSDP, Strategy.ZERO1)


def suite_of(trials: int = 6, goal: Goal | None = None, stop_when: StopWhen | None = None) -> Suite:
    return make_suite(
        goal=goal,
        training={"instance": "ml.p4d.24xlarge"},
        matrix={"strategy": STRATEGIES},
        search=Search.ELIMINATE,
        measurement=Measurement(trials=trials, stop_when=stop_when),
    )


def labelled(runs: tuple[Run, ...]) -> list[tuple[str, int]]:
    return [(run.cell.label, run.trial) for run in runs]


def results_of(suite: Suite, *seconds: list[float]) -> list[RunResult]:
    return [
        completed_result(cell, trial, step_seconds=value, suite=suite)
        for cell, values in zip(expand_cells(suite), seconds, strict=True)
        for trial, value in enumerate(values, start=1)
    ]


def next_round(suite: Suite, results: list[RunResult], number: int = 2) -> list[tuple[str, int]]:
    return labelled(plan_round(suite, expand_cells(suite), execution_id="e", round_number=number, results=results))


def test_a_grid_is_one_round() -> None:
    suite = replace(suite_of(trials=2), search=Search.GRID)
    cells = expand_cells(suite)
    runs = labelled(plan_round(suite, cells, execution_id="e", round_number=1))
    assert [sorted(runs[:3]), sorted(runs[3:])] == [
        [("ddp", 1), ("fsdp", 1), ("zero1", 1)], [("ddp", 2), ("fsdp", 2), ("zero1", 2)]
    ]  # fmt: skip
    assert plan_round(suite, cells, execution_id="e", round_number=2) == ()


def test_elimination_begins_with_three_trials_of_everything() -> None:
    suite = suite_of()
    first = plan_round(suite, expand_cells(suite), execution_id="e", round_number=1)
    assert Counter(run.trial for run in first) == {1: 3, 2: 3, 3: 3}
    single = suite_of(trials=1)
    assert {run.trial for run in plan_round(single, expand_cells(single), execution_id="e", round_number=1)} == {1}


def test_a_cell_that_can_not_win_gets_no_further_trial() -> None:
    suite = suite_of()
    results = results_of(suite, [1.00, 1.03, 1.01], [1.01, 1.00, 1.03], [2.00, 2.01, 2.02])
    assert sorted(next_round(suite, results)) == [("ddp", 4), ("fsdp", 4)]


def test_a_clear_answer_ends_the_search() -> None:
    suite = suite_of()
    assert next_round(suite, results_of(suite, [1.00, 1.01, 1.0], [1.50, 1.51, 1.5], [2.00, 2.01, 2.0])) == []


def test_all_trials_used_up_ends_the_search() -> None:
    suite = suite_of(trials=3)
    level = results_of(suite, [1.0, 1.1, 1.05], [1.05, 1.0, 1.1], [1.1, 1.05, 1.0])
    assert next_round(suite, level, number=3) == []


def test_cells_known_precisely_enough_end_the_search_though_they_are_level() -> None:
    precise = StopWhen(relative_half_width=0.05)
    level = ([1.00, 1.02, 1.01], [1.021, 1.00, 1.01], [1.0105, 1.02, 1.001])
    assert next_round(suite_of(stop_when=precise), results_of(suite_of(), *level)) == []
    assert len(next_round(suite_of(), results_of(suite_of(), *level))) == 3


def test_a_cell_that_fails_gets_no_further_trial() -> None:
    suite = suite_of()
    cells = expand_cells(suite)
    results = [result for result in results_of(suite, [1.0, 1.03, 1.01], [1.01, 1.0, 1.03], [9.0, 9.0, 9.0]) if
               result.run.cell != cells[2]]  # fmt: skip
    results += [failed_result(cells[2], trial, Outcome.OUT_OF_MEMORY) for trial in (1, 2, 3)]
    assert sorted(next_round(suite, results)) == [("ddp", 4), ("fsdp", 4)]


def test_where_everything_fails_the_search_is_over() -> None:
    suite = suite_of()
    results = [failed_result(cell, trial, Outcome.IMAGE_ERROR) for cell in expand_cells(suite) for trial in (1, 2)]
    assert next_round(suite, results) == []


def test_a_cell_that_may_keep_the_limit_after_all_stays() -> None:
    # 100,000 samples at 8 a step: 12,500 steps; ddp takes 3.5 h, fsdp about the limit of 4.05 h, zero1 7 h
    goal = Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal("4.05"))
    suite = suite_of(goal=goal)
    results = results_of(suite, [1.00, 1.02, 1.01], [1.15, 1.19, 1.16], [2.00, 2.02, 2.01])
    verdict = judge(suite, expand_cells(suite), results)
    assert set(verdict.refused) == {cell.cell_id for cell in expand_cells(suite)[1:]}
    assert sorted(label for label, _ in next_round(suite, results)) == ["ddp", "fsdp"]


def test_the_same_results_give_the_same_round() -> None:
    suite = suite_of()
    results = results_of(suite, [1.00, 1.05], [1.03, 1.00], [1.40, 1.45])
    assert next_round(suite, results) == next_round(suite, list(reversed(results)))


def search(suite: Suite, mean_seconds: dict[str, float], noise: float, rng: random.Random) -> list[RunResult]:
    """Plays a whole search with normal noise."""
    cells, results = expand_cells(suite), list[RunResult]()
    for number in range(1, 20):
        runs = plan_round(suite, cells, execution_id="e", round_number=number, results=results)
        if not runs:
            break
        results += [
            completed_result(
                run.cell, run.trial, step_seconds=mean_seconds[run.cell.label] * (1 + rng.gauss(0, noise)), suite=suite
            )
            for run in runs
        ]
    return results


@pytest.mark.parametrize("seed", range(5))
def test_a_search_spends_its_trials_where_the_answer_is_open(seed: int) -> None:
    matrix = {"strategy": STRATEGIES, "optimizer": (OptimizerName.ADAMW, OptimizerName.SGD)}
    suite = replace(suite_of(trials=8), matrix=matrix)
    labels = [cell.label for cell in expand_cells(suite)]
    means = dict(zip(labels, [1.00, 1.04, 1.5, 1.6, 1.7, 1.8], strict=True))
    results = search(suite, means, 0.01, random.Random(seed))
    trials = Counter(result.run.cell.label for result in results)
    verdict = judge(suite, expand_cells(suite), results)
    assert verdict.row(str(verdict.recommended)).label == labels[0]
    assert verdict.finding in (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE)
    assert all(trials[label] == 3 for label in labels[2:])
    assert len(results) <= 28  # the grid would take 48


def test_a_trial_whose_result_was_lost_comes_again_instead_of_one_that_is_there() -> None:
    suite = suite_of()
    results = results_of(suite, [1.00, 1.04, 1.02], [1.01, 1.03, 1.0], [1.02, 1.00, 1.03])
    lost = [result for result in results if (result.run.cell.label, result.run.trial) != ("ddp", 1)]
    assert ("ddp", 1) in next_round(suite, lost)
    assert {trial for label, trial in next_round(suite, lost) if label != "ddp"} <= {4}


def test_a_result_that_is_lost_in_every_round_does_not_keep_the_search_going() -> None:
    suite = suite_of(trials=5)
    results = results_of(suite, [1.00, 1.04, 1.02], [1.01, 1.03, 1.0], [1.02, 1.00, 1.03])
    lost = [result for result in results if (result.run.cell.label, result.run.trial) != ("ddp", 1)]
    # A search that loses nothing has three trials at once, then one a round, so three rounds; each may be followed by
    # one of repeats on quiet hosts; a search that loses results has twice as many at most.
    assert suite.limits.max_contended_repeats == 1
    goes_on = [bool(next_round(suite, lost, number=number)) for number in range(2, 15)]
    assert goes_on == [True] * 11 + [False] * 2
