"""The gate on a change: it holds or fails only where the trials show it."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.simulations.test_gate import SHAPES, Shape, findings
from tests.unit.run_samples import PRICE, completed_results, failed_result, make_suite
from traindyno.cli.commands.compare_command import gate_lines
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.choices import Search
from traindyno.core.verdict.comparison import ExecutionRecord, NotComparable, compare_executions
from traindyno.core.verdict.gate import (
    DEARER,
    MOST_JOBS,
    SLOWER,
    GateFinding,
    check_gate,
    jobs_to_decide,
)
from traindyno.figures.estimates import comparison_of

STEADY = (1.0, 1.001, 0.999)


def record(
    name: str,
    *step_seconds: Sequence[float],
    instance: str = "ml.p4d.24xlarge",
    search: Search = Search.RACE,
    **changes: Any,
) -> ExecutionRecord:
    strategies = ("ddp", "fsdp")[: len(step_seconds)]
    suite = make_suite(
        training={"instance": instance}, matrix={"strategy": strategies}, search=search
    )
    cells = suite.cells
    results = completed_results(cells, *step_seconds, suite=suite, **changes)
    return ExecutionRecord(execution_id=name, suite=suite, cells=cells, results=tuple(results))


def scaled(factor: float) -> tuple[float, ...]:
    return tuple(factor * seconds for seconds in STEADY)


@pytest.mark.parametrize(
    ("factor", "tolerance", "finding"),
    [
        (1.0, 0.1, GateFinding.HOLDS),
        (0.7, 0.1, GateFinding.HOLDS),
        (1.1, 0.1, GateFinding.OPEN),
        (1.5, 0.1, GateFinding.WORSE),
    ],
)
def test_the_gate_follows_the_trials(factor: float, tolerance: float, finding: GateFinding) -> None:
    compared = compare_executions(record("old", STEADY), record("new", scaled(factor)))
    assert check_gate(compared, tolerance).finding is finding


def test_one_worse_cell_fails_the_gate() -> None:
    compared = compare_executions(record("old", STEADY, STEADY), record("new", STEADY, scaled(1.5)))
    gate = check_gate(compared, 0.1)
    assert gate.finding is GateFinding.WORSE
    assert [figure.label for figure in gate.of(GateFinding.HOLDS)] == ["ddp", "ddp"]
    assert [(figure.label, figure.worse) for figure in gate.of(GateFinding.WORSE)] == [
        ("fsdp", SLOWER),
        ("fsdp", DEARER),
    ]


def test_a_dearer_price_fails_the_gate_at_equal_times() -> None:
    dearer = replace(PRICE, usd_per_instance_hour=Decimal(2) * (PRICE.usd_per_instance_hour or 0))
    compared = compare_executions(record("old", STEADY), record("new", STEADY, price=dearer))
    gate = check_gate(compared, 0.1)
    assert [figure.worse for figure in gate.of(GateFinding.WORSE)] == [DEARER]


def test_an_unknown_price_leaves_the_time() -> None:
    unknown = replace(PRICE, usd_per_instance_hour=None)
    compared = compare_executions(record("old", STEADY), record("new", STEADY, price=unknown))
    gate = check_gate(compared, 0.1)
    assert gate.worse == [SLOWER]
    assert list(gate_lines(gate)) == [
        "Passed: no cell is slower by more than 10 %.",
        "Cost is not judged: a price is unknown.",
    ]


def test_a_cell_without_a_price_is_named_beside_one_with_a_price() -> None:
    new = record("new", STEADY, STEADY)
    unknown = replace(PRICE, usd_per_instance_hour=None)
    results = (*new.results[:3], *(replace(result, price=unknown) for result in new.results[3:]))
    compared = compare_executions(record("old", STEADY, STEADY), replace(new, results=results))
    assert list(gate_lines(check_gate(compared, 0.1))) == [
        "Passed: no cell is slower or dearer by more than 10 %.",
        "Cost of fsdp is not judged: a price is unknown.",
    ]


def test_one_trial_or_none_leaves_the_gate_open_with_the_reason(snapshot: Snapshot) -> None:
    old = record("old", STEADY)
    (figure, _) = check_gate(compare_executions(old, record("new", (3.0,))), 0.1).figures
    assert (figure.finding, figure.reason) == (
        GateFinding.OPEN,
        "the execution has one trial of it, whose scatter is unknown",
    )
    lost = replace(
        old, execution_id="new", results=(failed_result(old.cells[0], 1, Outcome.OUT_OF_MEMORY),)
    )
    gate = check_gate(compare_executions(old, lost), 0.1)
    assert gate.finding is GateFinding.OPEN
    assert "price" not in "".join(gate_lines(gate))
    snapshot(gate.figures[0].reason)


def test_a_cell_dropped_by_the_baselines_race_is_not_judged() -> None:
    """A cell that only the later race dropped may have become slower: the gate stays open."""
    race = record("old", STEADY, (3.0,))
    passed = check_gate(compare_executions(race, record("new", STEADY, (9.0,))), 0.1)
    assert (passed.finding, passed.dropped) == (GateFinding.HOLDS, ("fsdp",))
    still_open = check_gate(
        compare_executions(record("old", STEADY, STEADY), record("new", STEADY, (3.0,))), 0.1
    )
    assert (still_open.finding, still_open.dropped) == (GateFinding.OPEN, ())


def test_a_cell_of_a_grid_that_lost_its_trials_leaves_the_gate_open() -> None:
    """Nothing dropped it: it may have become slower."""
    grid = record("old", STEADY, (1.0,), search=Search.GRID)
    gate = check_gate(compare_executions(grid, record("new", STEADY, scaled(3.0))), 0.1)
    assert (gate.finding, gate.dropped) == (GateFinding.OPEN, ())
    assert {figure.reason for figure in gate.of(GateFinding.OPEN)} == {
        "the baseline has one trial of it, whose scatter is unknown"
    }


def test_an_execution_is_not_compared_with_itself() -> None:
    with pytest.raises(NotComparable, match="old is named twice, expected two executions"):
        compare_executions(record("old", STEADY), record("old", STEADY))


def test_a_cell_outpaced_in_the_baselines_race_is_not_judged() -> None:
    old = record("old", STEADY, ())
    ended = failed_result(old.cells[1], 1, Outcome.OUTPACED)
    race = replace(old, results=(*old.results, ended))
    gate = check_gate(compare_executions(race, record("new", STEADY, (3.0,))), 0.1)
    assert (gate.finding, gate.dropped) == (GateFinding.HOLDS, ("fsdp",))


def test_no_number_of_jobs_is_promised_on_this_machine() -> None:
    """All jobs of an execution meet one level of it."""
    old, new = (record(name, STEADY, instance="local.cpu") for name in ("old", "new"))
    gate = check_gate(compare_executions(old, new), 0.1)
    assert {figure.finding for figure in gate.figures} == {GateFinding.OPEN}
    assert {figure.jobs for figure in gate.figures} == {None}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_change_is_found_and_equal_executions_pass(shape: Shape) -> None:
    """A short walk of the nightly simulation."""
    assert findings(1.1, 0.03, shape=shape, changes=5)[GateFinding.WORSE] >= 4
    assert findings(1.0, 0.1, shape=shape, changes=5)[GateFinding.HOLDS] >= 4
    assert findings(1.0, 0.03, shape=shape, changes=5)[GateFinding.WORSE] == 0


def test_fewer_jobs_decide_far_from_the_tolerance() -> None:
    def jobs(difference: float) -> int | None:
        return jobs_to_decide(comparison_of(difference, 0.02**2, 6), 2, 0.03, 0.05)

    near = jobs(0.0)
    far = jobs(-0.05)
    assert near is not None
    assert far is not None
    assert 2 < far < near <= MOST_JOBS
    assert jobs(0.0296) is None
