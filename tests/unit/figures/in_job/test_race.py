"""Which cells of a race run again."""

from math import exp, log, sqrt
from random import Random

import pytest

from tests.unit.run_samples import known
from traindyno.figures.in_job.outpaced import Pace, pace_of
from traindyno.figures.in_job.race import (
    HOST_DEVIATIONS,
    MOST_CONTENDERS,
    Racer,
    contenders_in_job,
    pick_contenders,
)
from traindyno.figures.in_job.run_scatter import run_scatter

GPU, GPU_TYPE = run_scatter("ml.p4d.24xlarge"), "ml.p4d.24xlarge"


def racer(cell_id: str, value: float, job: str = "j", hosts: float = 0.02) -> Racer:
    return Racer(cell_id=cell_id, job=job, value=value, host_deviation=hosts)


def paces(**seconds: list[float]) -> dict[str, list[Pace]]:
    return {name: [known(pace_of([1.0, 1.0, *each], 1))] for name, each in seconds.items()}


@pytest.mark.parametrize(
    ("instance", "share"), [(GPU_TYPE, 0.089), ("ml.c7i.large", 0.168), ("local.cpu", 2.0)]
)
def test_contenders_are_as_near_as_single_runs_of_their_machine_scatter(
    instance: str, share: float
) -> None:
    scatter = run_scatter(instance)
    assert scatter.within() == pytest.approx(share, abs=0.001)
    level = {"far": 1.01 * (1 + share), "near": 0.99 * (1 + share), "best": 1.0}
    found = contenders_in_job(paces(**{name: [each] * 20 for name, each in level.items()}), scatter)
    assert found == ["best", "near"]


def test_the_margin_is_wider_where_seeds_count() -> None:
    scatter = run_scatter(GPU_TYPE, has_target=True)
    assert scatter.within() == pytest.approx(0.416, abs=0.001)


def test_a_run_that_other_work_stalled_runs_again_on_this_machine_only() -> None:
    found = paces(best=[1.0] * 20, stalled=[1.0] * 10 + [9.0] * 10, slow=[5.0] * 20)
    assert contenders_in_job(found, run_scatter("local.cpu")) == ["best", "stalled"]
    assert contenders_in_job(found, GPU) == ["best"]


@pytest.mark.parametrize(("runs", "share"), [(2, 0.62), (3, 0.48), (4, 0.40)])
def test_a_cell_of_this_machine_runs_until_the_tests_would_tell_it_apart(
    runs: int, share: float
) -> None:
    # e^(4 × 0.12 × √(2 ÷ 2)) = 1.616, e^(0.48 × √(2 ÷ 3)) = 1.480, e^(0.48 × √(2 ÷ 4)) = 1.404
    level = {"best": 1.0, "near": 0.99 * (1 + share), "far": 1.01 * (1 + share)}
    once = paces(**{name: [each] * 20 for name, each in level.items()})
    again = {name: own * runs for name, own in once.items()}
    local = run_scatter("local.cpu")
    assert contenders_in_job(again, local, runs) == ["best", "near"]
    assert contenders_in_job({**again, **once}, local, runs) == []
    assert contenders_in_job({**again, "near": again["far"]}, local, runs) == []
    assert contenders_in_job(again, GPU, runs) == contenders_in_job(once, GPU)


def test_a_job_may_have_had_slow_hosts_but_not_by_any_amount() -> None:
    reach = exp(HOST_DEVIATIONS * 0.05 * sqrt(2))
    apart = [racer("best", 100.0, hosts=0.05), racer("other", 100 * reach - 0.1, "k", 0.05)]
    assert pick_contenders(apart, within=GPU.within()) == ["best", "other"]
    hopeless = racer("other", 100 * reach + 0.1, "k", 0.05)
    assert pick_contenders(
        [racer("best", 100.0, hosts=0.05), hopeless, racer("next", 115.0, "k")],
        within=GPU.within(),
    ) == ["best"]


@pytest.mark.parametrize("seed", range(20))
def test_the_best_cell_always_runs_again_and_few_of_a_job(seed: int) -> None:
    source = Random(seed)
    racers = [
        racer(str(number), exp(source.gauss(0, 0.1)), f"j{source.randrange(3)}")
        for number in range(40)
    ]
    found = pick_contenders(racers, within=GPU.within())
    by_id = {each.cell_id: each for each in racers}
    best = min(racers, key=lambda each: each.value)
    assert best.cell_id in found
    for job in ("j0", "j1", "j2"):
        of_job = sorted((each for each in racers if each.job == job), key=lambda each: each.value)
        again = [by_id[cell_id] for cell_id in found if by_id[cell_id].job == job]
        assert again == of_job[: len(again)]
        assert len(again) <= MOST_CONTENDERS
        assert all(log(each.value / of_job[0].value) <= log(1 + GPU.within()) for each in again)
