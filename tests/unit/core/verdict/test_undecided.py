"""What trials can't decide is a range of the comparison, and no note beside it."""

from dataclasses import replace
from math import exp, log
from typing import Any

import pytest

from tests.unit.run_samples import completed_result, known, make_cell, make_suite, remeasured
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.stalls import RecurringEvent
from traindyno.core.measurement.step_time import SingleStall, measure_step_time
from traindyno.core.run.workload import FullRun
from traindyno.core.suite.choices import Strategy
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.undecided import find_undecided
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.beyond import NO_RANGE, Drift, Range

SUITE = make_suite(
    matrix={"strategy": (Strategy.DDP, Strategy.FSDP)},
    training={"instance": "ml.p4d.24xlarge"},
    examples=1_000_000,
)
FAST, SLOW = SUITE.cells
UNSTEADY = {"is_reached": False, "reason": "step times still changed"}


def a_stall(share: float, most_share: float, seconds: float = 30.0) -> tuple[SingleStall, ...]:
    again = (1 - share) * most_share / (1 - most_share)
    return (SingleStall(seconds=seconds, share=share, share_again=again, step=100),)


STALLS = a_stall(0.02, 0.08)


def a_run(**changes: Any) -> MeasuredRun:
    measured = known(
        remeasured(completed_result(make_cell(), 1), **{"drift": None, **changes}).measured
    )
    return measured


def ends(scatter: Range) -> tuple[float, float]:
    return scatter.low, scatter.high


def judged(
    lead: float,
    fast: dict[str, Any],
    slow: dict[str, Any] | None = None,
    full_run: FullRun | None = None,
) -> Verdict:
    given = [(FAST, 1.0, fast), (SLOW, 1 + lead, slow or {})]
    noise = (0.0, 0.002, -0.002)
    return judge(
        SUITE,
        (FAST, SLOW),
        [
            replace(
                remeasured(
                    completed_result(
                        cell, trial, step_seconds=seconds + noise[trial * place % 3], suite=SUITE
                    ),
                    **fields,
                ),
                full_run=full_run,
            )
            for place, (cell, seconds, fields) in enumerate(given, start=1)
            for trial in (1, 2, 3)
        ],
    )


def test_stalls_shown_twice_by_no_trial_are_a_range() -> None:
    run = a_run(undecided_stalls=STALLS)
    undecided = find_undecided([run, a_run()])
    # in one of two trials: without them 2 % less; at most 8 % of the time instead of 2 %
    assert ends(undecided.stalls) == pytest.approx((log(0.98) / 2, log(0.98 / 0.92) / 2))


@pytest.mark.parametrize(
    ("seconds", "is_decided"),
    [(0.08, False), (11.0, True), (30.0, True), (85.0, True), (95.0, False)],
)
def test_only_similar_stalls_show_a_recurrence_in_another_trial(
    seconds: float, is_decided: bool
) -> None:
    run = a_run(undecided_stalls=a_stall(0.02, 0.08, seconds=30.0))
    recurring = RecurringEvent(name="stall", count=10, steps_between=40, seconds=seconds)
    other = a_run(recurring=(recurring,))
    assert find_undecided([run, other]).stalls.is_empty is is_decided
    # lengths of one cause may reach up to the longest
    longest = a_run(recurring=(replace(recurring, longest_seconds=95.0),))
    assert find_undecided([run, longest]).stalls.is_empty is (seconds <= 90)
    # one event is a single stall at its rate, and one of another name was logged
    for unlike in (replace(recurring, count=1), replace(recurring, name="checkpoint")):
        assert not find_undecided([run, a_run(recurring=(unlike,))]).stalls.is_empty
    assert (
        find_undecided([run, run, a_run(), a_run()]).range == find_undecided([run, a_run()]).range
    )


def test_a_hiccup_of_one_run_does_not_hide_the_long_stall_of_another() -> None:
    steps = [0.1] * 400
    stalled = [*steps[:200], 30.1, *steps[201:]]
    hiccups = [seconds + 0.08 * (step % 40 == 39) for step, seconds in enumerate(steps)]

    def run_of(seconds: list[float]) -> MeasuredRun:
        measured = measure_step_time(seconds)
        return a_run(undecided_stalls=measured.undecided_stalls, recurring=measured.recurring)

    alone = find_undecided(
        [run_of(step_seconds) for step_seconds in (stalled, steps, steps, steps)]
    )
    beside = find_undecided(
        [run_of(step_seconds) for step_seconds in (stalled, hiccups, hiccups, hiccups)]
    )
    assert ends(beside.stalls) == ends(alone.stalls)
    assert alone.stalls.low < -0.1
    assert alone.stalls.high > 0.05


@pytest.mark.parametrize(
    ("steps", "is_decided"),
    [
        ((50, 140, None), True),
        ((140, None, 50), True),
        # at one step of the run, once in each run, and in one trial only
        ((140, 145, None), False),
        ((50, 140, 90), False),
        ((140, None, None), False),
    ],
)
def test_stalls_of_several_trials_at_different_steps_recur(
    steps: tuple[int | None, ...], is_decided: bool
) -> None:
    def run_of(step: int | None, seconds: float = 30.0) -> MeasuredRun:
        single = SingleStall(seconds=seconds, share=0.02, share_again=0.08, step=step or 0)
        return a_run(undecided_stalls=(single,) if step else ())

    assert find_undecided([run_of(step) for step in steps]).stalls.is_empty is is_decided
    # of different length, they have no common cause
    apart = [run_of(step, seconds=30.0 * 4**place) for place, step in enumerate(steps)]
    assert not find_undecided(apart).stalls.is_empty


def test_a_drift_detected_over_the_trials_together_counts() -> None:
    drifting = a_run(drift=Drift(change=0.02, standard_error=0.01))
    assert find_undecided([drifting]).drift == 0
    together = find_undecided([drifting] * 9)
    assert together.drift == pytest.approx(0.02)
    # from the mean of the window on: half of it, and three times what was seen
    assert ends(together.range) == pytest.approx((0, 0.07))
    apart = [
        a_run(drift=Drift(change=change, standard_error=0.001)) for change in (0.09, -0.05, 0.02)
    ]
    assert find_undecided(apart).drift == 0


def test_of_cells_with_the_same_drift_only_the_difference_counts() -> None:
    first, second = (
        find_undecided([a_run(drift=Drift(change=change, standard_error=0.001))])
        for change in (0.02, 0.03)
    )
    assert ends(first.range_against(second)) == pytest.approx((-0.035, 0))
    assert ends(second.range_against(first)) == pytest.approx((0, 0.035))


def test_drifts_of_two_cells_are_compared_by_the_errors_of_both() -> None:
    drifting, alike, steady = (
        find_undecided([a_run(drift=Drift(change=change, standard_error=0.006))])
        for change in (0.02, 0.01, -0.01)
    )
    assert (drifting.drift, alike.drift, steady.drift) == (0.02, 0, 0)
    # the second may drift as the first, although one alone is detected
    assert drifting.range_against(alike) == NO_RANGE == alike.range_against(drifting)
    assert ends(drifting.range_against(steady)) == pytest.approx((0, 0.105))
    assert alike.range_against(steady) == NO_RANGE
    # without a trend of its own, a cell may be steady
    assert ends(drifting.range_against(find_undecided([a_run()]))) == pytest.approx((0, 0.07))


def test_a_single_stall_does_not_hide_a_changing_level() -> None:
    changing = UNSTEADY | {"drift": Drift(change=0.02, standard_error=0.001)}
    for stalls in ((), a_stall(0.001, 0.002)):
        assert judged(0.03, changing | {"undecided_stalls": stalls}).finding is Finding.UNDECIDED


def test_drifts_in_both_directions_are_noise_between_trials() -> None:
    changes = (0.2, -0.25, 0.1, -0.15, 0.05)
    both, one_way = (
        find_undecided(
            [a_run(**UNSTEADY, drift=Drift(change=change, standard_error=0.01)) for change in logs]
        )
        for logs in (changes, map(abs, changes))
    )
    assert both.range == NO_RANGE
    assert ends(one_way.range) == pytest.approx((0, 3.5 * 0.15))


@pytest.mark.parametrize(
    ("lead", "finding"), [(0.03, Finding.UNDECIDED), (0.3, Finding.RECOMMENDED)]
)
def test_a_lead_has_to_hold_wherever_the_truth_lies_in_the_range(
    lead: float, finding: Finding
) -> None:
    assert judged(lead, {}).finding is Finding.RECOMMENDED
    verdict = judged(lead, {"undecided_stalls": STALLS})
    assert verdict.finding is finding
    assert verdict.best is not None
    assert verdict.best.seconds is not None
    assert known(verdict.best.seconds.interval).high > verdict.best.seconds.mean * 0.98 / 0.92
    text = describe_verdict(verdict)
    assert ("no trial shows whether its stalls recur" in text.headline) == (
        finding is Finding.UNDECIDED
    )
    assert verdict.to_decide.trials is None


def test_a_rival_possibly_better_than_seen_is_not_beaten() -> None:
    assert judged(0.03, {}, {"undecided_stalls": a_stall(0.05, 0.1)}).finding is (Finding.UNDECIDED)


@pytest.mark.parametrize(
    ("name", "full_run", "finding"),
    [
        ("checkpoint", FullRun(checkpoint_every_minutes=30), Finding.RECOMMENDED),
        ("evaluate", FullRun(evaluate_every_steps=1000), Finding.RECOMMENDED),
        ("checkpoint", None, Finding.UNDECIDED),
        ("stall", FullRun(checkpoint_every_minutes=30), Finding.UNDECIDED),
    ],
)
def test_a_schedule_that_the_suite_states_leaves_nothing_open(
    name: str, full_run: FullRun | None, finding: Finding
) -> None:
    seen = tuple(
        RecurringEvent(name=phase, count=1, steps_between=400, seconds=8.0)
        for phase in ("checkpoint", "evaluate")
    )
    stalls = tuple(replace(stall, name=name) for stall in STALLS)
    fast = {"recurring": seen, "undecided_stalls": stalls}
    assert judged(0.03, fast, {"recurring": seen}, full_run).finding is finding


def test_a_rates_range_is_the_inverse_of_the_times() -> None:
    verdict = judged(0.03, {"undecided_stalls": STALLS})
    rate = verdict.row(FAST.cell_id).samples_per_second
    time = verdict.row(FAST.cell_id).seconds
    assert rate is not None
    assert rate.interval is not None
    assert known(time).interval is not None
    assert rate.interval.low < rate.mean * exp(-log(0.98 / 0.92))
    assert rate.interval.high > rate.mean / 0.98
