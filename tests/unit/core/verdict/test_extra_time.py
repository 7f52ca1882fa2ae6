"""Whose an interruption is: the cells of a type share capacity that fails, and it says nothing
about one of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import (
    completed_results,
    failed_result,
    known,
    make_attempt,
    make_suite,
    remeasured,
)
from traindyno.core.costs.extra_time import extra_times
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.stalls import OneTimeEvent
from traindyno.core.run.workload import FullRun
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal, Pricing, SpotTerms
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_runs import group_runs
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import Finding
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.beyond import Range
from traindyno.figures.table import FigureColumn

SUITE = make_suite(
    matrix={"strategy": ("ddp", "fsdp")}, training={"instance": "ml.p4d.24xlarge"}, examples=400_000
)
CELLS = SUITE.cells
CHECKPOINT = (OneTimeEvent(name="checkpoint", step=30, seconds=2.0),)
TYPES = make_suite(matrix={"instance": ("ml.p4d.24xlarge", "ml.p5.48xlarge")}, examples=288_000)


def trials(
    cell: Cell, step_seconds: float, suite: Suite = SUITE, count: int = 5
) -> list[RunResult]:
    return completed_results(
        [cell], [step_seconds * (1 + trial / 1000) for trial in range(1, count + 1)], suite=suite
    )


def with_fault(result: RunResult) -> RunResult:
    """Its first attempt was lost to a fault of the service, half way through."""
    lost = make_attempt(
        number=1,
        outcome=None,
        error="ServiceFault",
        billable_seconds=90.0,
        phase_seconds={"training": 90.0},
    )
    return replace(result, attempts=(lost, *result.attempts))


def with_faults(results: Sequence[RunResult], count: int) -> list[RunResult]:
    return [with_fault(result) if index < count else result for index, result in enumerate(results)]


@pytest.mark.parametrize("faults", [(1, 0), (0, 1), (2, 0), (3, 3)])
@pytest.mark.parametrize("checkpoints", [None, 10.0])
def test_faults_of_the_service_cost_no_answer(
    faults: tuple[int, int], checkpoints: float | None
) -> None:
    """A lead of 5 % stays one, whoever met the faults, with a checkpoint each ten minutes and
    without any.
    """
    schedule = None if checkpoints is None else FullRun(checkpoint_every_minutes=checkpoints)
    results = [
        replace(remeasured(result, one_time=CHECKPOINT), full_run=schedule)
        for cell, step_seconds, count in zip(CELLS, (1.0, 1.05), faults, strict=True)
        for result in with_faults(trials(cell, step_seconds), count)
    ]
    verdict = judge(SUITE, CELLS, results)
    assert verdict.recommended == CELLS[0].cell_id
    assert verdict.finding is Finding.RECOMMENDED
    assert all(not row.failed for row in verdict.rows)


def test_cells_of_one_type_have_one_rate_at_a_time() -> None:
    first, second = group_runs(
        SUITE, CELLS, [*with_faults(trials(CELLS[0], 1.0), 1), *trials(CELLS[1], 1.0)]
    )
    one, same = (
        extra_times(runs.measured, runs.others, hazard=runs.hazard)[FigureColumn.SECONDS]
        for runs in (first, second)
    )
    assert first.hazard is not None
    assert first.hazard == second.hazard
    assert one.interruptions.low <= 0 < one.interruptions.high
    assert one.range_against(same) == Range()
    other = replace(same, capacity=("ml.p5.48xlarge", "on-demand"))
    assert one.range_against(other) == one.range.plus(other.range.inverse())


def test_a_limit_is_tested_by_the_upper_end_of_one_run() -> None:
    """Trials 5 % apart; the mean keeps the limit and one run in six does not."""
    cell = CELLS[0]
    results = completed_results([cell], (0.95, 1.0, 1.05), suite=SUITE)
    (row, _) = judge(SUITE, CELLS, results).rows
    assert row.seconds is not None
    for seconds, reason in (
        (known(known(row.prediction).seconds).high * 1.001, None),
        (row.seconds.mean * 1.05, "more than 5 % of its runs may exceed the goal's limit"),
        (row.seconds.mean * 0.99, "it exceeds the goal's limit"),
    ):
        goal = Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal(seconds) / 3600)
        verdict = judge(replace(SUITE, goal=goal), CELLS, results)
        assert verdict.refused.get(cell.cell_id) == reason
        assert verdict.recommended == (None if reason else cell.cell_id)


def test_one_trial_does_not_tell_whether_a_limit_is_kept() -> None:
    goal = Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal(1000))
    verdict = judge(replace(SUITE, goal=goal), CELLS, trials(CELLS[0], 1.0, count=1))
    expected = (
        "whether it meets the goal's limit is unknown: one trial shows no spread between runs"
    )
    assert verdict.refused == {CELLS[0].cell_id: expected}


FAST, SLOW = TYPES.cells


@pytest.mark.parametrize("faults", [1, 2, 3])
def test_few_faults_in_minutes_of_trials_decide_nothing_and_remove_nothing(faults: int) -> None:
    """Ten hours without checkpoints on demand; one type is 30 % faster, and met the faults."""
    results = [*with_faults(trials(FAST, 1.0, TYPES), faults), *trials(SLOW, 1.3, TYPES)]
    verdict = judge(TYPES, (FAST, SLOW), results)
    assert (verdict.finding, verdict.refused) == (Finding.UNDECIDED, {})
    (row, _) = verdict.rows
    assert 10 < known(row.seconds).mean / 3600 < 10.2


def test_the_cost_of_an_interruption_is_one_rule_for_all_cells() -> None:
    """Spot, ten hours without checkpoints: two interruptions in trials of the slower cell make it
    no better.
    """
    suite = make_suite(
        matrix={"strategy": ("ddp", "fsdp")},
        training={"instance": "ml.p4d.24xlarge"},
        examples=288_000,
    )
    for kept_seconds in (0.0, 30.0):
        slow, fast = (
            [
                replace(result, price=replace(result.price, purchase="spot"))
                for result in trials(cell, step_seconds, suite, count=4)
            ]
            for cell, step_seconds in zip(suite.cells, (1.2, 1.0), strict=True)
        )
        hit = [
            remeasured(result, interruptions=1, lost_seconds=50.0, kept_seconds=kept_seconds)
            for result in slow[:2]
        ]
        verdict = judge(suite, suite.cells, [*hit, *slow[2:], *fast])
        assert (verdict.recommended, verdict.finding) == (
            fast[0].run.cell.cell_id,
            Finding.RECOMMENDED,
        )
        assert verdict.refused == {}


@pytest.mark.parametrize(("lead", "rate"), [(1.2, 0.02), (1.5, 0.02), (1.2, None), (1.5, None)])
def test_a_lead_on_spot_is_seen_without_interrupted_trials(lead: float, rate: float | None) -> None:
    """Two types, 4 trials, a checkpoint each 30 minutes in ten hours, and 0.02 an hour as the suite
    states.

    If it states none, one an hour is possible, which costs more than a fifth of the time with such
    checkpoints.
    """
    terms = SpotTerms(discount=0.6, interruptions_per_hour=rate)
    suite = replace(
        TYPES, pricing=Pricing(spot=dict.fromkeys(("ml.p4d.24xlarge", "ml.p5.48xlarge"), terms))
    )
    results = [
        replace(
            remeasured(result, one_time=CHECKPOINT),
            price=replace(result.price, purchase="spot"),
            full_run=FullRun(checkpoint_every_minutes=30),
        )
        for cell, step_seconds in ((FAST, 1.0), (SLOW, lead))
        for result in trials(cell, step_seconds, suite, count=4)
    ]
    verdict = judge(suite, (FAST, SLOW), results)
    expected = Finding.UNDECIDED if rate is None and lead < 1.5 else Finding.RECOMMENDED
    assert (verdict.recommended, verdict.finding) == (FAST.cell_id, expected)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_cell_losing_trials_alone_does_not_win_by_them(snapshot: Snapshot, lost: int) -> None:
    """What is left of its trials is 5 % ahead; the lost ones may have been slow."""
    first, second = (
        trials(cell, step_seconds) for cell, step_seconds in zip(CELLS, (1.0, 1.05), strict=True)
    )
    gone = [
        failed_result(CELLS[0], 6 - number, Outcome.INTERNAL_ERROR) for number in range(1, lost + 1)
    ]
    verdict = judge(SUITE, CELLS, [*first[: 5 - lost], *gone, *second])
    assert (verdict.recommended, verdict.finding) == (CELLS[0].cell_id, Finding.UNDECIDED)
    row = verdict.row(CELLS[0].cell_id)
    assert row.hosts.uneven_faults is not None
    assert row.failed == 0
    plain = judge(SUITE, CELLS, [*first[: 5 - lost], *second]).row(CELLS[0].cell_id)
    assert known(known(row.prediction).seconds).high > known(plain.seconds).mean * 5 / (5 - lost)
    text = describe_verdict(verdict)
    snapshot(text.headline)
    snapshot(text.cautions)
    also = [failed_result(CELLS[1], 5, Outcome.INTERNAL_ERROR)]
    even = judge(SUITE, CELLS, [*first[:4], *gone[:1], *second[:4], *also])
    assert all(cell_row.hosts.uneven_faults is None for cell_row in even.rows)


def test_losing_trials_does_not_make_another_cell_win() -> None:
    """The cell behind had the faults: the answer holds either way, and stays."""
    first, second = (
        trials(cell, step_seconds) for cell, step_seconds in zip(CELLS, (1.0, 1.05), strict=True)
    )
    gone = [failed_result(CELLS[1], trial, Outcome.INTERNAL_ERROR) for trial in (4, 5)]
    verdict = judge(SUITE, CELLS, [*first, *second[:3], *gone])
    assert (verdict.recommended, verdict.finding) == (CELLS[0].cell_id, Finding.RECOMMENDED)
