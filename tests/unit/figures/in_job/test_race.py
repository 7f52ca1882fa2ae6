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

GPU = run_scatter("ml.p4d.24xlarge")
GPU_TYPE = "ml.p4d.24xlarge"


def racer(cell_id: str, value: float, job: str = "j", hosts: float = 0.02) -> Racer:
    return Racer(cell_id=cell_id, job=job, value=value, host_deviation=hosts)


def paces(**seconds: list[float]) -> dict[str, list[Pace]]:
    return {
        name: [known(pace_of([1.0, 1.0, *step_seconds], 1))]
        for name, step_seconds in seconds.items()
    }


@pytest.mark.parametrize(
    ("instance", "share"), [(GPU_TYPE, 0.089), ("ml.c7i.large", 0.168), ("local.cpu", 2.0)]
)
def test_contenders_are_as_near_as_single_runs_of_their_machine_scatter(
    instance: str, share: float
) -> None:
    scatter = run_scatter(instance)
    assert scatter.within() == pytest.approx(share, abs=0.001)
    level = {"far": 1.01 * (1 + share), "near": 0.99 * (1 + share), "best": 1.0}
    contenders = contenders_in_job(
        paces(**{name: [step_seconds] * 20 for name, step_seconds in level.items()}), scatter
    )
    assert contenders == ["best", "near"]


def test_the_margin_is_wider_for_counting_seeds() -> None:
    scatter = run_scatter(GPU_TYPE, has_target=True)
    assert scatter.within() == pytest.approx(0.416, abs=0.001)


def test_a_run_stalled_by_other_work_runs_again_on_this_machine_only() -> None:
    by_run = paces(best=[1.0] * 20, stalled=[1.0] * 10 + [9.0] * 10, slow=[5.0] * 20)
    assert contenders_in_job(by_run, run_scatter("local.cpu")) == ["best", "stalled"]
    assert contenders_in_job(by_run, GPU) == ["best"]
    # a quarter of its steps took no time by the clock: its quick steps tell nothing
    by_run = paces(best=[1.0] * 20, coarse=[0.0] * 10 + [4.0] * 10)
    assert contenders_in_job(by_run, run_scatter("local.cpu")) == ["best", "coarse"]


@pytest.mark.parametrize(("runs", "share"), [(2, 0.62), (3, 0.48), (4, 0.40)])
def test_a_cell_of_this_machine_runs_until_the_tests_would_tell_it_apart(
    runs: int, share: float
) -> None:
    # e^(4 × 0.12 × √(2 ÷ 2)) = 1.616, e^(0.48 × √(2 ÷ 3)) = 1.480, e^(0.48 × √(2 ÷ 4)) = 1.404
    level = {"best": 1.0, "near": 0.99 * (1 + share), "far": 1.01 * (1 + share)}
    once = paces(**{name: [step_seconds] * 20 for name, step_seconds in level.items()})
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
    picked = pick_contenders(racers, within=GPU.within())
    by_id = {candidate.cell_id: candidate for candidate in racers}
    best = min(racers, key=lambda candidate: candidate.value)
    assert best.cell_id in picked
    for job in ("j0", "j1", "j2"):
        of_job = sorted(
            (candidate for candidate in racers if candidate.job == job),
            key=lambda candidate: candidate.value,
        )
        again = [by_id[cell_id] for cell_id in picked if by_id[cell_id].job == job]
        assert again == of_job[: len(again)]
        assert len(again) <= MOST_CONTENDERS
        assert all(
            log(candidate.value / of_job[0].value) <= log(1 + GPU.within()) for candidate in again
        )
