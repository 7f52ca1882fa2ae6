"""More loader workers: the estimate against a simulated loader, and its bounds."""

from itertools import product

import pytest

from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.suite.settings import Settings
from traindyno.slices.slowness.verdict import LoaderAdvice, advise_workers

G5 = "ml.g5.2xlarge"  # 8 vCPUs for one GPU


def step_seconds(load: float, rest: float, workers: int) -> float:
    """Mean step of a long run: a process that loads by itself, or workers that load steps in turn, each at a time."""
    if workers == 0:
        return load + rest
    free, now, count = [0.0] * workers, 0.0, 2000
    for step in range(count):
        worker = step % workers
        made = free[worker] + load
        now = max(now, made) + rest
        # A worker begins its next step at once, as far as the prefetching allows, which does not bind it here.
        free[worker] = made
    return now / count


def advice(load: float, rest: float, workers: int, instance: str = G5) -> LoaderAdvice | None:
    step = step_seconds(load, rest, workers)
    data = PartSeconds(mean=step - rest, error=0.0)
    parts = StepParts(samples_per_step=8, step=PartSeconds(mean=step, error=0.0), waiting=data, data=data)
    return advise_workers(Settings(instance=instance, batch_size_per_device=8, loader_workers=workers), parts)


@pytest.mark.parametrize(("load", "workers"), list(product([0.02, 0.1, 0.25, 0.9], [0, 1, 2, 4])))
def test_the_advice_saves_what_it_says(load: float, workers: int) -> None:
    rest, now = 0.1, step_seconds(load, 0.1, workers)
    found = advice(load, rest, workers)
    if found is None:
        assert now == pytest.approx(rest, rel=0.08)
        return
    assert workers < found.loader_workers <= 7
    assert 1 - step_seconds(load, rest, found.loader_workers) / now == pytest.approx(found.saving, abs=0.03)
    assert found.is_bounded == (step_seconds(load, rest, 7) > rest * 1.05)


@pytest.mark.parametrize("instance", ["local.cpu", "ml.m7i.xlarge"])
def test_no_number_where_the_cores_train_or_are_unknown(instance: str) -> None:
    assert advice(0.5, 0.1, 0, instance) is None


def test_no_advice_for_a_wait_that_may_be_noise() -> None:
    step, data = PartSeconds(mean=1.0, error=0.2), PartSeconds(mean=0.3, error=0.2)
    parts = StepParts(samples_per_step=8, step=step, waiting=data, data=data)
    assert advise_workers(Settings(instance=G5, batch_size_per_device=8), parts) is None
    assert advise_workers(Settings(instance=G5, batch_size_per_device=8), None) is None
