"""Which cells of a race run again."""

from math import exp, log, sqrt
from random import Random

import pytest

from traindyno.core.search.race import (
    HOST_DEVIATIONS,
    MOST_CONTENDERS,
    WITHIN,
    WITHIN_OF_QUALITY,
    Racer,
    pick_contenders,
)


def racer(cell_id: str, value: float, job: str = "j", hosts: float = 0.02) -> Racer:
    return Racer(cell_id=cell_id, job=job, value=value, host_deviation=hosts)


def test_contenders_are_within_eight_per_cent_of_the_best_run_of_their_job() -> None:
    found = pick_contenders([racer("far", 108.1), racer("near", 107.9), racer("best", 100.0)])
    assert found == ["best", "near"]


def test_the_margin_is_wider_where_seeds_count() -> None:
    racers = [racer("far", 131.0), racer("near", 129.0), racer("best", 100.0)]
    assert pick_contenders(racers, within=WITHIN_OF_QUALITY) == ["best", "near"]


def test_a_job_may_have_had_slow_hosts_but_not_by_any_amount() -> None:
    reach = exp(HOST_DEVIATIONS * 0.05 * sqrt(2))
    apart = [racer("best", 100.0, hosts=0.05), racer("other", 100 * reach - 0.1, "k", 0.05)]
    assert pick_contenders(apart) == ["best", "other"]
    hopeless = racer("other", 100 * reach + 0.1, "k", 0.05)
    assert pick_contenders(
        [racer("best", 100.0, hosts=0.05), hopeless, racer("next", 115.0, "k")]
    ) == ["best"]


@pytest.mark.parametrize("seed", range(20))
def test_the_best_cell_always_runs_again_and_few_of_a_job(seed: int) -> None:
    source = Random(seed)
    racers = [
        racer(str(number), exp(source.gauss(0, 0.1)), f"j{source.randrange(3)}")
        for number in range(40)
    ]
    found = pick_contenders(racers)
    by_id = {each.cell_id: each for each in racers}
    best = min(racers, key=lambda each: each.value)
    assert best.cell_id in found
    for job in ("j0", "j1", "j2"):
        of_job = sorted((each for each in racers if each.job == job), key=lambda each: each.value)
        again = [by_id[cell_id] for cell_id in found if by_id[cell_id].job == job]
        assert again == of_job[: len(again)]
        assert len(again) <= MOST_CONTENDERS
        assert all(log(each.value / of_job[0].value) <= log(1 + WITHIN) for each in again)
