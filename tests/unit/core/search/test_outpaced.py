"""A run that can't win is told by its first steps, and one that may win is not."""

import ast
from math import exp
from random import Random

import pytest

from localcloud.home import REPO_ROOT
from traindyno.core.search.outpaced import LEAST_STEPS, WARM_UP_STEPS, Pace, is_outpaced, least_ratio, pace_of

BEST = Pace(seconds_per_sample=0.01, standard_error=0.0, startup_seconds=0.0, steps=98)


def pace(steps: list[float], startup: float = 0.0) -> Pace:
    found = pace_of(steps, 100, startup)
    assert found is not None
    return found


def test_the_module_is_python_3_8_with_the_standard_library() -> None:
    source = (REPO_ROOT / "traindyno/core/search/outpaced.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"math", "typing"}


def test_nothing_is_known_before_five_steps_after_two() -> None:
    assert WARM_UP_STEPS + LEAST_STEPS == 7
    assert pace_of([1.0] * 6, 100) is None
    assert pace_of([30.0, 2.0, *[1.0] * 5], 100, 4.0) == Pace(
        seconds_per_sample=0.01, standard_error=0.0, startup_seconds=36.0, steps=5
    )


def test_a_run_is_outpaced_beyond_a_tenth_only() -> None:
    assert not is_outpaced(pace([9.0, 9.0, *[1.099] * 5]), BEST)
    assert is_outpaced(pace([9.0, 9.0, *[1.101] * 5]), BEST)
    assert not is_outpaced(pace([9.0, 9.0, *[0.5] * 5]), BEST)


def test_the_batch_is_that_of_all_devices() -> None:
    twice = pace_of([2.0] * 7, 200)
    assert twice is not None
    assert not is_outpaced(twice, BEST)


@pytest.mark.parametrize("stall", [2.0, 20.0, 2000.0])
def test_one_stall_outpaces_no_run(stall: float) -> None:
    assert not is_outpaced(pace([1.0, 1.0, 1.0, 1.0, stall, 1.0, 1.0]), BEST)


def test_the_start_counts_where_the_goal_counts_it() -> None:
    slow_start, fast = pace([1.0] * 7, 500.0), pace([0.5] * 7, 1.0)
    assert is_outpaced(slow_start, fast)
    assert is_outpaced(slow_start, fast, samples=10_000)
    late = BEST._replace(startup_seconds=500.0)
    assert not is_outpaced(late, BEST)
    assert is_outpaced(late, BEST, samples=10_000)
    # A start that both have hides the rates of a short workload.
    assert not is_outpaced(Pace(0.012, 0.0, 5000.0, 98), Pace(0.01, 0.0, 5000.0, 98), samples=10_000)


def test_steps_as_noisy_as_the_difference_need_more_of_them() -> None:
    """At a true ratio of 1 no run is dropped, and of those behind by a fifth all are in the end."""
    source = Random(7)
    wrong = late = 0
    for _ in range(300):
        steps = [exp(source.gauss(0, 0.2)) for _ in range(202)]
        wrong += any(is_outpaced(pace(steps[:count]), BEST) for count in range(7, 30))
        late += not is_outpaced(pace([1.25 * step for step in steps]), BEST)
    assert wrong <= 0.05 * 300
    assert late == 0


def test_the_bound_is_nearer_than_the_measured_ratio() -> None:
    run = pace([1.0, 1.0, 1.5, 1.4, 1.6, 1.5, 1.5])
    assert 1.1 < least_ratio(run, BEST) < 1.5
    assert least_ratio(BEST._replace(seconds_per_sample=0.015), BEST) == pytest.approx(1.5)
