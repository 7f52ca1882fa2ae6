"""The one model of cells, places, blocks and draws of hosts."""

from math import exp, log
from random import Random
from statistics import fmean

import pytest

from traindyno.figures.cell_means import fit_cells
from traindyno.figures.trials import Trial


def trial(
    level: float, block: str | None = None, job: str | None = None, place: int | None = None
) -> Trial:
    hosts = None if job is None else frozenset({job})
    return Trial(value=exp(level), block=block, job=job, place=place, hosts=hosts)


@pytest.mark.parametrize("seed", range(10))
def test_cells_with_a_trial_in_each_block_have_the_means_of_their_trials(seed: int) -> None:
    source = Random(seed)
    rounds = [source.gauss(0, 0.1) for _ in range(source.randint(2, 6))]
    cells = [
        [
            trial(level + of_round + source.gauss(0, 0.01), block=str(number))
            for number, of_round in enumerate(rounds)
        ]
        for level in (0.0, 0.03, 0.3)
    ]
    expected = [fmean(log(trial_of_cell.value) for trial_of_cell in cell) for cell in cells]
    assert fit_cells(cells).means == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("slow", [0.1, 0.4, 1.0])
def test_a_cell_is_no_faster_for_a_lost_trial_of_a_slow_round(slow: float) -> None:
    """The first cell takes 3 % more than the second, and has no trial in the slow round."""
    noise = [0.001, -0.001, 0.0005, -0.0005]
    cells = [
        [
            trial(level + deviation + slow * (number == 3), block=str(number))
            for number, deviation in enumerate(noise)
        ]
        for level in (0.03, 0.0, 0.1)
    ]
    first, second, _ = fit_cells([cells[0][:3], *cells[1:]]).means
    assert first - second == pytest.approx(0.03, abs=0.002)


def test_the_effect_of_a_place_in_the_job_is_no_difference_between_cells() -> None:
    """A leak of 2 % a run and a first run that is 10 % slower; forward, reversed, and two more
    orders.
    """
    orders = ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1))
    levels = (0.0, 0.01, 0.02, 0.03)
    cells: list[list[Trial]] = [[] for _ in levels]
    for job, order in enumerate(orders[:3]):
        for place, cell in enumerate(order, start=1):
            effect = 0.02 * place + 0.1 * (place == 1)
            cells[cell].append(
                trial(levels[cell] + 0.05 * job + effect, block="1", job=str(job), place=place)
            )
    fitted = fit_cells(cells)
    means = fitted.means
    assert [mean - means[0] for mean in means] == pytest.approx(levels, abs=1e-3)
    # of a warm job's run in the mean place, over three jobs
    assert means[0] == pytest.approx(0.02 * 2.5 + 0.05, abs=1e-3)
    # from a cold machine's second run, to its slow first one
    assert (fitted.places.low, fitted.places.high) == pytest.approx((-0.01, 0.07), abs=1e-3)


def test_places_that_do_nothing_leave_something_open_as_seldom_as_chance() -> None:
    """Of two effects, each is found at the level of 1 %."""
    source = Random(1)
    open_tables = 0
    for _ in range(300):
        cells = [
            [
                trial(source.gauss(0, 0.01), block="1", job=str(job), place=1 + (cell + job) % 4)
                for job in range(4)
            ]
            for cell in range(4)
        ]
        open_tables += not fit_cells(cells).places.is_empty
    assert open_tables <= 300 * 0.035


def test_groups_without_a_common_block_differ_by_the_means_of_their_jobs() -> None:
    groups = [
        [
            [
                trial(level + 0.02 * job, block="1", job=f"{name}{job}", place=place)
                for job in (-1, 1)
            ]
            for place, level in enumerate(levels, start=1)
        ]
        for name, levels in (("a", (0.0, 0.1)), ("b", (0.5, 0.7)))
    ]
    assert fit_cells([*groups[0], *groups[1]]).means == pytest.approx(
        [0.0, 0.1, 0.5, 0.7], abs=1e-6
    )


def test_one_run_of_a_dropped_cell_is_set_against_its_own_job() -> None:
    """It ran once, in a job on a host slower by 10 %."""
    jobs = {"a": 0.1, "b": 0.0, "c": 0.0}
    first, second = (
        [
            trial(level + slow + 0.001 * (name == "c") * level, job=name, block="1")
            for name, slow in jobs.items()
        ]
        for level in (0.0, 0.01)
    )
    dropped = [trial(0.1 + 0.2, job="a", block="1")]
    means = fit_cells([first, second, dropped]).means
    assert means[2] - means[0] == pytest.approx(0.2, abs=0.003)


def test_trials_alone_have_their_own_mean() -> None:
    assert fit_cells([[trial(0.1), trial(0.3)], [trial(0.0)]]).means == pytest.approx([0.2, 0.0])
    assert fit_cells([]).means == []
