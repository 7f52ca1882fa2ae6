"""A run that can't win is told by its first steps, and one that may win is not."""

from math import exp, inf
from random import Random
from statistics import NormalDist

import pytest

from tests.unit.run_samples import known
from traindyno.figures.distributions import t_quantile
from traindyno.figures.in_job.outpaced import (
    LEAST_STEPS,
    MOST_STEPS,
    STALL_SECONDS,
    WARM_UP_STEPS,
    EarlyEnd,
    Pace,
    early_end,
    ended_by,
    is_outpaced,
    least_ratio,
    most_seconds,
    pace_of,
)
from traindyno.figures.in_job.run_scatter import ACCELERATORS, RunScatter, run_scatter

BEST = Pace(
    seconds_per_sample=0.01,
    standard_error=0.0,
    startup_seconds=0.0,
    steps=98,
    samples_per_step=100,
    longest_seconds=1.0,
    quick_seconds_per_sample=0.01,
)
SAMPLES = 1e6
GPU = RunScatter(ACCELERATORS)
LOCAL = run_scatter("local.cpu")


def pace(steps: list[float], startup: float = 0.0) -> Pace:
    own_pace = known(pace_of(steps, 100, startup))
    return own_pace


def early(steps: list[float], best: Pace = BEST, scatter: RunScatter = GPU) -> EarlyEnd | None:
    return early_end(steps, 100, {"best": best}, SAMPLES, scatter)


def test_the_error_of_few_steps_has_the_tail_of_students_t() -> None:
    for degrees in range(4, 100):
        three_deviations = BEST._replace(standard_error=1.0, steps=degrees + 1).error
        assert three_deviations == pytest.approx(t_quantile(NormalDist().cdf(3), degrees), rel=0.03)


def test_nothing_is_known_before_five_steps_after_two() -> None:
    assert WARM_UP_STEPS + LEAST_STEPS == 7
    assert pace_of([1.0] * 6, 100) is None
    assert pace_of([30.0, 2.0, *[1.0] * 5], 100, 4.0) == Pace(
        seconds_per_sample=0.01,
        standard_error=0.0,
        startup_seconds=36.0,
        steps=5,
        samples_per_step=100,
        longest_seconds=1.0,
        quick_seconds_per_sample=0.01,
    )


def test_a_run_is_outpaced_beyond_a_tenth_only() -> None:
    assert not is_outpaced(pace([9.0, 9.0, *[1.099] * 5]), BEST, SAMPLES, GPU)
    assert is_outpaced(pace([9.0, 9.0, *[1.101] * 5]), BEST, SAMPLES, GPU)
    assert not is_outpaced(pace([9.0, 9.0, *[0.5] * 5]), BEST, SAMPLES, GPU)


def test_the_batch_is_the_sum_of_all_devices() -> None:
    twice = known(pace_of([2.0] * 7, 200))
    assert not is_outpaced(twice, BEST, SAMPLES, GPU)


def test_a_run_is_judged_after_seven_steps_and_whenever_they_have_doubled() -> None:
    """How often the steps are read changes nothing."""
    slow_later = [1.0] * 12 + [3.0] * 40
    looks = {
        steps
        for steps in range(53)
        if ended_by(slow_later[:steps], 100, {"best": BEST}, SAMPLES, GPU)
    }
    assert looks == {*range(28, 53)}
    assert early(slow_later) == EarlyEnd(
        28, 0.0, ended_by(slow_later, 100, {"best": BEST}, SAMPLES, GPU) or {}
    )
    assert early([2.0] * 7) is None  # it has no step left
    assert early([2.0] * 8) is not None
    assert early([1.0] * (2 * MOST_STEPS)) is None


def test_the_run_ahead_is_the_fastest_ended_one() -> None:
    paces = {"slow": BEST._replace(seconds_per_sample=0.1), "best": BEST}
    bound = known(ended_by([2.0] * 7, 100, paces, SAMPLES, GPU))
    assert (bound["by"], bound["steps"]) == ("best", 5)
    assert ended_by([2.0] * 7, 100, {}, SAMPLES, GPU) is None


def test_an_overlong_step_ends_its_run() -> None:
    assert most_seconds(BEST, 100) == 2 * 1.0 + STALL_SECONDS
    assert most_seconds(BEST, 400, compile_seconds=50.0) == 8 * 1.0 + 50 + STALL_SECONDS
    assert (
        most_seconds(BEST, 10) == 2 * 1.0 + STALL_SECONDS
    )  # a pause is no shorter with a smaller batch
    end = known(early([500.0, 40.0, 40.0, 40.0]))
    assert (end.steps, end.overdue_seconds, end.bound["steps"]) == (2, 32.0, 1)
    assert end.bound["least_ratio"] == pytest.approx(32 - 3 * 2**0.5 * ACCELERATORS)
    assert early([500.0, 400.0, *[1.0] * 9]) is None  # the warm-up steps compile
    assert early([1.0, 1.0, 1.0, STALL_SECONDS, *[1.0] * 9]) is None
    assert early([1.0] * 3 + [99.0] * 9, BEST._replace(longest_seconds=inf)) is None


@pytest.mark.parametrize("stall", [2.0, 20.0, 2000.0])
def test_one_stall_outpaces_no_run(stall: float) -> None:
    assert not is_outpaced(pace([1.0, 1.0, 1.0, 1.0, stall, 1.0, 1.0]), BEST, SAMPLES, GPU)


def test_costs_of_the_first_run_of_a_cell_end_no_cell() -> None:
    """Its own start is left out: it may compile what its later runs find compiled.

    That of the run ahead counts.
    """
    for samples in (10_000, SAMPLES):
        assert not is_outpaced(pace([500.0, 20.0, *[1.0] * 5], 500.0), BEST, samples, GPU)
    slow = pace([1.2] * 7)
    assert is_outpaced(slow, BEST, 10_000, GPU)
    assert not is_outpaced(slow, BEST._replace(startup_seconds=100.0), 10_000, GPU)
    assert is_outpaced(slow, BEST._replace(startup_seconds=100.0), SAMPLES, GPU)


@pytest.mark.parametrize("ratio", [1.5, 2.8])
def test_beside_other_work_one_run_shows_a_factor_of_three_only(ratio: float) -> None:
    assert early([ratio] * 50, scatter=GPU) is not None
    assert early([ratio] * 50, scatter=LOCAL) is None
    assert early([3.2] * 50, scatter=LOCAL) is not None


def test_stalled_steps_end_no_run_of_this_machine() -> None:
    """Half of its steps are quick."""
    stalled = [1.0, 1.0, *[1.0, 9.0] * 25]
    assert early(stalled, scatter=LOCAL) is None
    assert early(stalled, scatter=GPU) is not None


@pytest.mark.parametrize("every", [4, 8])
def test_steps_waiting_for_loader_workers_end_a_run_on_aws(every: int) -> None:
    """Each k-th step waits, and the mean is 1.5 times that of the best run."""
    waits = 1 + 0.5 * every
    loader_bound = [waits if step % every == 0 else 1.0 for step in range(400)]
    assert early(loader_bound, scatter=GPU) is not None


def test_steps_as_noisy_as_the_difference_need_more_of_them() -> None:
    """At a true ratio of 1 no run is dropped, and of those behind by a fifth all are in the end."""
    source = Random(7)
    wrong = late = 0
    for _ in range(300):
        steps = [exp(source.gauss(0, 0.2)) for _ in range(202)]
        wrong += any(is_outpaced(pace(steps[:count]), BEST, SAMPLES, GPU) for count in range(7, 30))
        late += not is_outpaced(pace([1.25 * step for step in steps]), BEST, SAMPLES, GPU)
    assert wrong <= 0.05 * 300
    assert late == 0


def test_the_bound_holds_for_scattering_steps_and_runs() -> None:
    run = pace([1.0, 1.0, 1.5, 1.4, 1.6, 1.5, 1.5])
    assert 1.1 < least_ratio(run, BEST, SAMPLES, GPU) < 1.5
    source = Random(8)
    wrong = 0
    for _ in range(300):
        true = exp(abs(source.gauss(0.1, 0.1)))
        level = true * exp(source.gauss(0, ACCELERATORS) - source.gauss(0, ACCELERATORS))
        steps = [level * exp(source.gauss(0, 0.02)) for _ in range(20)]
        bound = ended_by(steps, 100, {"best": BEST}, SAMPLES, GPU)
        wrong += bound is not None and bound["least_ratio"] > true
    assert wrong <= 3
