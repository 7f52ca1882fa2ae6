"""What the history lets a plan expect: whole only where every cell is known."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.planned_suites import past_cell
from tests.unit.run_samples import make_cell
from traindyno.core.jobs.job import Job
from traindyno.core.planning.expectation import expect, expect_all
from traindyno.core.planning.history import CellHistory
from traindyno.core.planning.jobs import separate_job
from traindyno.core.suite.runs import trial_runs

CELLS = [
    make_cell(f"{index:08x}", f"cell {index}", instance_count=count)
    for index, count in enumerate((1, 2), start=1)
]
JOBS = [
    separate_job(run)
    for run in sorted(trial_runs("e", CELLS, [1, 2]), key=lambda run: (run.trial, run.cell.cell_id))
]
PRICE = Decimal(36)


def history(
    cell_id: str, seconds: float, *, runs: int = 1, is_simulated: bool = False
) -> CellHistory:
    return past_cell(
        cell_id, seconds, run_count=runs, billable_seconds=seconds / 2, is_simulated=is_simulated
    )


KNOWN = {
    "00000001": history("00000001", 100.0, runs=3),
    "00000002": history("00000002", 400.0, runs=2, is_simulated=True),
}


def test_runs_start_as_soon_as_another_one_ends() -> None:
    expected = expect([JOBS], KNOWN, usd_per_hour=PRICE, concurrency=2)
    # 100 and 400 s at once, 100 s after the first; the last one from 200 s to 600 s
    assert expected.hours == Decimal(600) / 3600
    # two trials of 50 s on one instance and of 200 s on two, at a cent a second
    assert expected.usd == expected.usd_of_known == Decimal(9)
    assert (expected.cells, expected.known_cells, expected.past_runs, expected.is_simulated) == (
        2,
        2,
        5,
        True,
    )
    assert expect([JOBS], KNOWN, usd_per_hour=PRICE, concurrency=1).hours == Decimal(1000) / 3600


def test_packs_take_the_time_of_their_slowest_run() -> None:
    # on two instances: 400 s, then both runs of 100 s, then 400 s
    assert (
        expect([JOBS], KNOWN, usd_per_hour=PRICE, concurrency=1, instances=2).hours
        == Decimal(900) / 3600
    )


def test_a_round_begins_when_the_one_before_has_ended() -> None:
    rounds = [JOBS[:2], JOBS[2:]]
    assert expect(rounds, KNOWN, usd_per_hour=PRICE, concurrency=4).hours == Decimal(800) / 3600
    assert expect([JOBS], KNOWN, usd_per_hour=PRICE, concurrency=4).hours == Decimal(400) / 3600


def test_a_cell_without_history_leaves_the_whole_unknown() -> None:
    expected = expect([JOBS], {"00000001": KNOWN["00000001"]}, usd_per_hour=PRICE, concurrency=1)
    assert (expected.usd, expected.hours, expected.usd_of_known) == (None, None, Decimal(1))
    assert (expected.cells, expected.known_cells, expected.is_simulated) == (2, 1, False)
    nothing = expect([JOBS], {}, usd_per_hour=PRICE, concurrency=1)
    assert (nothing.usd_of_known, nothing.known_cells, nothing.past_runs) == (None, 0, 0)
    unpriced = expect([JOBS], KNOWN, usd_per_hour=None, concurrency=1)
    assert (unpriced.usd, unpriced.usd_of_known) == (None, None)
    assert unpriced.hours == Decimal(1000) / 3600


@pytest.mark.parametrize("missing", [False, True])
def test_lanes_add_up(missing: bool) -> None:
    whole = expect([JOBS], KNOWN, usd_per_hour=PRICE, concurrency=1)
    other = expect([JOBS], {} if missing else {**KNOWN}, usd_per_hour=PRICE, concurrency=1)
    expected = expect_all([whole, other], hours=Decimal(2))
    assert expected.hours == Decimal(2)
    assert expected.usd == (None if missing else Decimal(18))
    assert expected.usd_of_known == Decimal(9 if missing else 18)
    assert (expected.cells, expected.known_cells, expected.past_runs) == (
        (4, 2, 5) if missing else (4, 4, 10)
    )
    assert expected.is_simulated


def test_single_phases_of_a_shared_job_are_expected_once() -> None:
    cells = [make_cell(f"{index:08x}", f"cell {index}") for index in (1, 2, 3)]
    runs = tuple(trial_runs("e", cells, [1]))
    known = {
        cell.cell_id: replace(
            history(cell.cell_id, 400.0), overhead_seconds=300.0, overhead_billable_seconds=120.0
        )
        for cell in cells
    }
    shared = Job(execution_id="e", job_id="j1", runs=runs)
    expected = expect([[shared]], known, usd_per_hour=PRICE, concurrency=1)
    # 300 + 3 x 100 s; billed are 120 + 3 x 80 s, at a cent a second
    assert (expected.hours, expected.usd) == (Decimal(600) / 3600, Decimal("3.6"))
    apart = expect([[separate_job(run) for run in runs]], known, usd_per_hour=PRICE, concurrency=1)
    assert (apart.hours, apart.usd) == (Decimal(1200) / 3600, Decimal(6))
