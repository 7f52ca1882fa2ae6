"""The search for the largest batch, against every limit of a memory that grows with the batch."""

import random

import pytest

from tests.unit.run_samples import known
from traindyno.core.search.largest_batch import (
    BEST,
    FEW_PROBES,
    LARGEST,
    MOST_PROBES,
    MOST_TIMES,
    Probe,
    chosen,
    has_room,
    next_batch,
)

STARTS = (1, 2, 3, 7, 8, 24, 100)
FAR_STARTS = (1, 7, 1000, 1025, 99_999)


def search(first: int, most: int, step: int = 1) -> list[Probe]:
    """The probes of a model whose largest batch is ``most``."""
    probes = list[Probe]()
    possible = range(step, MOST_TIMES * max(step, first) + 1, step)
    while (batch := next_batch(probes, first, possible)) is not None:
        probes.append(Probe(batch=batch, fits=batch <= most))
        assert len(probes) <= MOST_PROBES
    return probes


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("first", STARTS)
def test_the_result_fits_and_no_batch_is_probed_twice(first: int, step: int) -> None:
    for most in range(400):
        probes = search(first, most, step)
        batches = [probe.batch for probe in probes]
        assert len(set(batches)) == len(batches)
        assert all(batch >= step and batch % step == 0 for batch in batches)
        largest = chosen(probes, LARGEST)
        assert largest is None or largest <= most
        if largest is None:
            assert most < step, "each batch that could fit was probed"


@pytest.mark.parametrize("first", STARTS)
def test_a_start_within_a_factor_of_two_finds_it_within_a_sixteenth(first: int) -> None:
    for most in range(-(-first // 2), 2 * first):
        largest = known(chosen(search(first, most), LARGEST))
        assert most - largest <= max(0, most / 16)


@pytest.mark.parametrize("first", [*STARTS, 5, 112])
def test_six_probes_find_it_within_an_eighth_from_a_factor_of_four(first: int) -> None:
    for most in range(-(-first // 4), 4 * first):
        probes = search(first, most)
        largest = known(chosen(probes, LARGEST))
        assert len(probes) <= FEW_PROBES
        assert most - largest <= most / 8


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("first", FAR_STARTS)
def test_a_start_too_small_or_large_by_a_thousand_times_finds_it_too(first: int, step: int) -> None:
    begin = max(step, first - first % step)
    for power in range(-98, 99):
        most = int(begin * 2 ** (power / 9.8)) // step * step
        if not most:
            continue
        largest = known(chosen(search(first, most, step), LARGEST))
        assert most - largest <= most / 8


def test_upward_the_search_ends_at_1024_times_the_first_batch() -> None:
    assert [probe.batch for probe in search(1, 10**9)] == [1, 2, 4, 16, 64, 256, 1024]


@pytest.mark.parametrize("seed", range(5))
def test_any_memory_growing_with_the_batch_is_respected(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(400):
        per_sample = 10 ** draw.uniform(0, 9)
        fixed = 10 ** draw.uniform(0, 11)
        power = draw.uniform(0.5, 2.0)
        limit = 10 ** draw.uniform(0, 12)
        first = draw.randint(1, 10_000)
        probes: list[Probe] = []
        while (batch := next_batch(probes, first, range(1, MOST_TIMES * first + 1))) is not None:
            probes.append(Probe(batch=batch, fits=fixed + per_sample * batch**power <= limit))
        assert len(probes) <= MOST_PROBES
        largest = chosen(probes, LARGEST)
        assert largest is None or fixed + per_sample * largest**power <= limit
        assert largest is None or all(largest < probe.batch for probe in probes if not probe.fits)


@pytest.mark.parametrize(
    ("has_worked", "retries", "expected"),
    [(True, 0, True), (True, 1, False), (True, 40, False), (False, 0, False)],
)
def test_a_batch_at_the_limit_of_the_allocator_has_no_room(
    has_worked: bool, retries: int, expected: bool
) -> None:
    assert has_room(has_worked, retries) is expected


def test_the_best_batch_is_the_fastest_fitting_one() -> None:
    probes = [
        Probe(batch=4, fits=True, samples_per_second=10.0),
        Probe(batch=8, fits=True, samples_per_second=14.0),
        Probe(batch=16, fits=True, samples_per_second=13.0),
        Probe(batch=32, fits=False, samples_per_second=20.0),
    ]
    assert chosen(probes, BEST) == 8
    assert chosen(probes, LARGEST) == 16
    assert chosen(probes[3:], BEST) is None
