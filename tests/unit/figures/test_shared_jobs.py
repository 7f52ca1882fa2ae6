"""Cells of one job are compared within it: hosts, hours and what a place does to a run cancel."""

import random
from dataclasses import replace
from math import exp, log, sqrt
from statistics import variance

import pytest

from traindyno.figures.blocks import pool_of
from traindyno.figures.estimates import Comparison
from traindyno.figures.model import compare_on_hosts, fit_model
from traindyno.figures.table import CellFacts, FigureColumn, Figures, LongRun
from traindyno.figures.trials import Trial

NOISE = 0.005
SECONDS = FigureColumn.SECONDS
Cells = list[list[Trial]]


def orders(source: random.Random, cells: int, jobs: int) -> list[list[int]]:
    """Cells by place: drawn, and each second one reversed, as the planner has it."""
    places: list[list[int]] = []
    for job in range(jobs):
        places.append(places[-1][::-1] if job % 2 else source.sample(range(cells), cells))
    return places


def in_jobs(seed: int, cells: int, jobs: int, *, noise: float = NOISE, hosts: float = 0.0) -> Cells:
    source = random.Random(seed)
    trials_of_cells: Cells = [[] for _ in range(cells)]
    for job, order in enumerate(orders(source, cells, jobs)):
        host = source.gauss(0, hosts)
        for place, cell in enumerate(order, start=1):
            value = exp(host + source.gauss(0, noise))
            machine = frozenset({f"host {seed} {job}"})
            trials_of_cells[cell].append(
                Trial(value=value, hosts=machine, block=f"{job}", job=f"{seed} {job}", place=place)
            )
    return trials_of_cells


def slower(cells: Cells, *, leak: float = 0.0, cold: float = 0.0) -> Cells:
    return [
        [
            replace(
                trial,
                value=trial.value * exp(leak * (trial.place or 0) + cold * (trial.place == 1)),
            )
            for trial in trials
        ]
        for trials in cells
    ]


def compare(cells: Cells, first: int = 0, second: int = 1) -> Comparison:
    return compare_on_hosts(cells[first], cells[second], pool=pool_of(cells))


def is_the_same(one: Comparison, other: Comparison) -> bool:
    assert one.standard_error is not None
    return one.ratio == pytest.approx(
        other.ratio, rel=1e-9
    ) and one.standard_error == pytest.approx(other.standard_error, rel=1e-6)


@pytest.mark.parametrize(
    ("cells", "jobs"), [(2, 4), (2, 5), (3, 3), (4, 2), (4, 3), (8, 2), (8, 5)]
)
def test_a_leak_from_run_to_run_changes_no_comparison(cells: int, jobs: int) -> None:
    plain = in_jobs(1, cells, jobs)
    assert is_the_same(compare(plain), compare(slower(plain, leak=0.03)))


@pytest.mark.parametrize(("cells", "jobs"), [(2, 4), (3, 4), (4, 3), (8, 2), (8, 5)])
def test_a_cold_first_run_changes_no_comparison(cells: int, jobs: int) -> None:
    plain = in_jobs(2, cells, jobs)
    assert is_the_same(compare(plain), compare(slower(plain, leak=0.01, cold=0.2)))


@pytest.mark.parametrize("long", [None, LongRun(values={SECONDS: 1.0})])
def test_a_leak_leaves_all_places_in_a_cells_own_interval_but_not_in_a_long_runs(
    long: LongRun | None,
) -> None:
    """Of places 1 to 8 the work may have any: from 3 to 24 % more time."""
    cells = {str(index): trials for index, trials in enumerate(slower(in_jobs(5, 8, 5), leak=0.03))}
    columns = {SECONDS: {cell: tuple(trials) for cell, trials in cells.items()}}
    facts = dict.fromkeys(cells, CellFacts(long_run=long))
    model = fit_model(Figures(cells=facts, columns=columns))
    estimate = model.estimate("0", SECONDS)
    assert estimate is not None
    assert estimate.interval is not None
    holds_all = estimate.interval.low < exp(0.03) < exp(0.24) < estimate.interval.high
    assert holds_all == (long is None) == (not model.place_range("0", SECONDS).is_empty)


def test_without_degrees_of_freedom_to_spare_a_leak_counts_as_noise() -> None:
    plain = in_jobs(3, 2, 3)
    leaking = compare(slower(plain, leak=0.03))
    assert leaking.degrees_of_freedom == compare(plain).degrees_of_freedom == 2
    assert (leaking.standard_error or 0) > 4 * (compare(plain).standard_error or 1)


def test_slow_hosts_of_a_job_cancel() -> None:
    plain = in_jobs(4, 4, 3)
    factors = {"0": 1.0, "1": 1.1, "2": 0.97}
    moved = [
        [replace(trial, value=trial.value * factors[trial.block or ""]) for trial in cell]
        for cell in plain
    ]
    assert is_the_same(compare(plain), compare(moved))


@pytest.mark.parametrize("are_known", [True, False])
def test_two_jobs_borrow_from_the_spread_of_all_their_cells(are_known: bool) -> None:
    """Two differences alone have one degree of freedom, and t = 12.7."""
    cells = [
        [replace(trial, hosts=trial.hosts if are_known else None) for trial in cell]
        for cell in in_jobs(5, 8, 2, hosts=0.05)
    ]
    assert (compare(cells).degrees_of_freedom or 0) > 1.5
    pair = compare_on_hosts(cells[0], cells[1])
    assert pair.degrees_of_freedom == 1


def test_the_interval_of_two_jobs_holds_as_often_as_it_says() -> None:
    """Also where the reversed orders don't balance the first places."""
    held = []
    for seed in range(300):
        for jobs in (2, 3):
            comparison = compare(
                slower(in_jobs(seed, 4, jobs, hosts=0.02), leak=0.01), 0, 2
            ).with_interval()
            assert comparison.interval is not None
            held.append(comparison.interval.low <= 1 <= comparison.interval.high)
    assert 0.93 <= sum(held) / len(held) <= 0.985


def test_cells_of_another_group_tell_nothing_of_a_job() -> None:
    """They are in the same rounds, on hosts of their own."""
    group = in_jobs(6, 6, 4)
    far = in_jobs(7, 6, 4, noise=0.2)
    assert compare([*group, *far]) == compare(group)
    comparison = compare([*group, *far], 0, 7)
    differences = [
        log(one.value / other.value) for one, other in zip(group[0], far[1], strict=True)
    ]
    assert comparison.degrees_of_freedom == 3
    assert comparison.standard_error == pytest.approx(sqrt(variance(differences) / 4))


def test_parts_of_a_group_are_compared_by_rounds_with_the_spread_of_their_hosts() -> None:
    """In each round the two cells are in different jobs but for one."""
    parts = in_jobs(8, 2, 4, hosts=0.2), in_jobs(9, 2, 4, hosts=0.2)
    first = parts[0][0]
    second = [*parts[1][1][:3], parts[0][1][3]]
    comparison = compare_on_hosts(first, second, pool=pool_of([first, second]))
    differences = [log(one.value / other.value) for one, other in zip(first, second, strict=True)]
    assert comparison.standard_error == pytest.approx(sqrt(variance(differences) / 4))
    assert (comparison.standard_error or 0.0) > 3 * NOISE


def test_a_dead_job_costs_a_pair_its_split_round() -> None:
    first, second = in_jobs(10, 2, 4)
    last = second[-1]
    second[-1] = Trial(
        value=2.0, hosts=frozenset({"b"}), block=last.block, job="next attempt", place=1
    )
    comparison = compare_on_hosts(first, second)
    assert comparison.ratio == pytest.approx(1.0, rel=0.02)
    assert comparison.degrees_of_freedom == 2


def test_several_passes_through_the_cells_of_one_job_are_blocks_of_their_own() -> None:
    """A race carries its contenders forward and backward in one job."""
    source = random.Random(11)
    cells: Cells = [[], [], []]
    for index, (job, place_of) in enumerate([("a", (1, 2, 3)), ("b", (1, 2, 3)), ("b", (6, 5, 4))]):
        for cell, place in enumerate(place_of):
            value = exp(source.gauss(0, NOISE))
            cells[cell].append(Trial(value=value, block=f"{index}", job=job, place=place))
    assert (compare(cells).degrees_of_freedom or 0) >= 2 * 3 / 4 + 1
