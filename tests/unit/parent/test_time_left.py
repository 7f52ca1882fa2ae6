"""A run ends at its own limit or at the job's deadline; none begins that would not fit."""

import time

import pytest

from traindyno.parent.attempt import TimeLeft
from traindyno.parent.document import JobOrder
from traindyno.parent.ends import EndVerdict

ORDER = JobOrder("j1", "train.py", "local.cpu", 1000.0, None, 100.0, ())


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("spent_seconds", [0, 500, 899, 901, 5000])
@pytest.mark.parametrize("run_limit", [None, 10.0, 1000.0])
@pytest.mark.parametrize("run_took", [0, 9, 11, 1001])
def test_the_limit_that_is_over_first_decides(
    is_first: bool, spent_seconds: float, run_limit: float | None, run_took: float
) -> None:
    left = TimeLeft(ORDER._replace(max_run_seconds=run_limit), time.time() - spent_seconds)
    verdict = left.verdict(time.monotonic() - run_took, is_first=is_first)
    if run_limit is not None and run_took > run_limit:
        assert verdict == EndVerdict(reason="time_limit")
    elif spent_seconds > 900:
        assert verdict == (EndVerdict(reason="time_limit") if is_first else EndVerdict(left="deadline"))
    else:
        assert verdict is None


@pytest.mark.parametrize("spent_seconds", [0, 500, 890, 901])
@pytest.mark.parametrize("longest", [0, 20, 450, 890])
def test_a_run_begins_if_the_longest_so_far_would_fit(spent_seconds: float, longest: float) -> None:
    left = TimeLeft(ORDER, time.time() - spent_seconds)
    for seconds in (longest / 2, longest, longest / 3):
        left.took(seconds)
    assert left.fits_another() is (spent_seconds + longest < 900)
