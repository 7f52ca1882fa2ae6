"""How much longer interruptions make a run, by hand."""

from dataclasses import replace
from math import exp, log

import pytest

from tests.unit.run_samples import completed_result, known, make_attempt, make_cell, remeasured
from traindyno.core.costs.extra_time import extra_times
from traindyno.core.costs.hazard import Hazard, Restart, posterior, seen_resumption
from traindyno.core.costs.interruptions import Work, mean_work
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.goal import SpotTerms
from traindyno.figures.table import FigureColumn

RATE = 0.5
AT_ONCE = Restart(waiting=0, training=0)
KEY = ("ml.p4d.24xlarge", "spot")


def hazard_of(rate: float) -> Hazard:
    return posterior(
        KEY,
        count=0,
        hours=0.0,
        given={KEY[0]: SpotTerms(discount=0.5, interruptions_per_hour=rate)},
    )


def work_of(
    hours: float, checkpoint_hours: float | None = None, restart: Restart = AT_ONCE
) -> Work:
    return Work(
        seconds=hours * 3600,
        training_seconds=hours * 3600,
        instance_count=1,
        restart=restart,
        segment_seconds=checkpoint_hours and checkpoint_hours * 3600,
    )


def factor_of(hours: float, checkpoint_hours: float | None = None, rate: float = RATE) -> float:
    return work_of(hours, checkpoint_hours).at(hazard_of(rate), rate).training


def test_interruptions_lengthen_a_training_by_repeated_work() -> None:
    # 0.5 an hour without a checkpoint in 4 h: (e^2 - 1) / 2; with one every hour: (e^0.5 - 1) / 0.5
    assert factor_of(4) == pytest.approx((exp(2) - 1) / 2)
    assert factor_of(4, checkpoint_hours=1) == pytest.approx((exp(0.5) - 1) / 0.5)
    assert factor_of(4, checkpoint_hours=9) == pytest.approx((exp(2) - 1) / 2)
    assert factor_of(1e6, checkpoint_hours=0.1) == pytest.approx((exp(0.05) - 1) / 0.05)
    assert factor_of(4, rate=0) == 1


def test_each_interruption_waits_for_capacity_and_starts_again() -> None:
    # half an hour to load and compile again: e^0.25 x (e^0.5 - 1) / 0.5 = 1.66595; 0.5 x 4 x that =
    # 3.33190 times 60 s
    work = work_of(4, 1, Restart(waiting=60, training=1800)).at(hazard_of(RATE), RATE)
    assert work.training == pytest.approx(1.66595, rel=1e-5)
    assert work.interruptions == pytest.approx(3.33190, rel=1e-5)
    assert work.wall == pytest.approx(1.66595 + 199.9139 / 14_400, rel=1e-5)
    waited = replace(hazard_of(RATE), wait_seconds=600.0)
    assert work_of(4, 1, Restart(waiting=60, training=1800)).at(waited, RATE).wall == pytest.approx(
        1.66595 + 1999.139 / 14_400, rel=1e-5
    )


def test_without_checkpoints_the_start_is_repeated_too() -> None:
    """The start takes half an hour of 4 h: it is repeated after an interruption and counts once."""
    for checkpoint_hours in (None, 5.0):
        work = work_of(4, checkpoint_hours, Restart(waiting=0, training=1800)).at(
            hazard_of(RATE), RATE
        )
        assert work.training == pytest.approx(factor_of(4))


@pytest.mark.parametrize(
    ("hours", "restart_hours", "checkpoint_hours"), [(1e6, 0, None), (1e6, 2000, 2000)]
)
def test_an_almost_endless_run_takes_thousands_of_times_its_work(
    hours: float, restart_hours: float, checkpoint_hours: float | None
) -> None:
    """More than 10 interruptions, so 20 h at 0.5 an hour, from a start to the next checkpoint."""
    work = work_of(hours, checkpoint_hours, Restart(waiting=60, training=restart_hours * 3600))
    assert work.at(hazard_of(RATE), RATE).training == pytest.approx((exp(10) - 1) / 10)


def test_a_rate_of_zero_adds_nothing() -> None:
    """The start of the job was not reported."""
    result = replace(
        completed_result(make_cell(), 1),
        attempts=(make_attempt(phase_seconds={"training": 130.0}),),
    )
    extra = extra_times((result,), (), hazard=hazard_of(0))[FigureColumn.SECONDS]
    assert (extra.log_factor, extra.variance) == (0, 0)
    assert extra.range.is_empty


def interrupted_result(kept_seconds: float) -> RunResult:
    """Two interruptions of 50 s each, of which 10 s were not billed."""
    result = remeasured(
        completed_result(make_cell(), 1),
        interruptions=2,
        lost_seconds=100.0,
        kept_seconds=kept_seconds,
    )
    phases = {
        **result.attempts[0].phase_seconds,
        "interrupted": 20.0,
        "starting": 0.0,
        "training": 230.0,
    }
    attempt = replace(result.attempts[0], phase_seconds=phases, billable_seconds=250.0)
    return replace(result, attempts=(attempt,), price=replace(result.price, purchase="spot"))


def test_a_script_with_its_own_checkpoints_loses_the_same_as_its_trials() -> None:
    """2 interruptions an hour in the whole work."""
    interrupted = interrupted_result(kept_seconds=20.0)
    seen = seen_resumption([completed_result(make_cell(), 1), interrupted])
    assert seen == Restart(waiting=10.0, training=40.0)
    hazard = replace(hazard_of(2), resumed=seen)
    extra = extra_times((interrupted,), (), hazard=hazard)
    wall = extra[FigureColumn.SECONDS]
    billed = extra[FigureColumn.BILLABLE_SECONDS]
    work = known(mean_work([interrupted]))
    expected = 2 * work.training_seconds / 3600
    assert wall.log_factor == pytest.approx(log(1 + expected * 50 / work.seconds))
    assert billed.log_factor == pytest.approx(log(1 + expected * 40 / work.training_seconds))


def test_short_trials_begun_again_say_nothing_about_a_long_run() -> None:
    """All of the work is repeated, and not the minutes that the trials had done."""
    assert seen_resumption([interrupted_result(kept_seconds=0.0)]) is None
