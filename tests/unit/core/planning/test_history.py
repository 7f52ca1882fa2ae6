"""What a suite is expected to cost and take: earlier runs of its cells, under today's limits."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.core.planning.test_plan import LIMITS, readings
from tests.unit.planned_suites import past_cell, price
from tests.unit.run_samples import known, make_summary
from tests.unit.suites import script_document, small_document, small_suite
from traindyno.cli.display.plan_totals import (
    expected_cost_text,
    expected_time_text,
    short_script_text,
)
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.history import (
    CellHistory,
    PastRun,
    learn_from,
    learn_host_priors,
    work_id_of,
)
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite import Suite
from traindyno.figures.hosts import STATED_PRIORS, HostClass, HostPriors


def past(*, max_steps: int = 200, **changes: Any) -> PastRun:
    return PastRun(summary=make_summary(**{"cell_id": "cell", **changes}), max_steps=max_steps)


def history(cell_id: str, *, billable: float, seconds: float, runs: int = 3) -> CellHistory:
    return past_cell(cell_id, seconds, run_count=runs, billable_seconds=billable)


def plan(suite: Suite, *histories: CellHistory, usage: int = 100) -> Plan:
    return plan_suite(
        suite,
        execution_id="e",
        prices={"ml.g5.xlarge": price("ml.g5.xlarge", "3.6")},
        quotas=readings(suite, usage=usage, across_all=100),
        histories={cell_history.cell_id: cell_history for cell_history in histories},
    )


def test_the_mean_of_earlier_runs_is_expected() -> None:
    learned = learn_from(small_suite(), [past(), past(billable_seconds=500.0, seconds=520.0)])[
        "cell"
    ]
    assert (learned.run_count, learned.billable_seconds, learned.seconds) == (2, 400.0, 470.0)


def test_the_spread_of_hosts_is_learned_from_measured_trials_on_several_hosts() -> None:
    trials = [("a", 0.50), ("a", 0.50), ("b", 0.55), ("b", 0.55)]

    def learned(name: Callable[[str], str | None] = str, **changes: Any) -> HostPriors | None:
        return learn_host_priors(
            past(
                execution_id=f"e{number}",
                **{"hosts": name(host), "mean_step_seconds": seconds, **changes},
            )
            for number, (host, seconds) in enumerate(trials)
        )

    scatter = known(learned())
    # see test_hosts.py: 0.02^2 with 3 degrees, and ln(1.1) = 0.0953 between two hosts: 0.00454 with
    # 1
    one = scatter[HostClass.ONE_HOST]
    assert one.deviation == pytest.approx(((3 * 0.0004 + 0.00454) / 4) ** 0.5, rel=1e-2)
    assert "earlier executions" in one.source
    assert scatter[HostClass.MANY_HOSTS] == STATED_PRIORS[HostClass.MANY_HOSTS]
    several = known(learned(lambda host: f"{host}1 {host}2"))
    assert several[HostClass.MANY_HOSTS].degrees_of_freedom == 4
    waiting = known(learned(data_wait_share=0.3))
    assert waiting[HostClass.INPUT_BOUND].degrees_of_freedom == 4
    assert learned(lambda _: None) is None
    for unusable in ({"is_simulated": True}, {"outcome": Outcome.TIMED_OUT}):
        assert learned(**unusable) is None
    # of two cells, each on one host
    assert (
        learn_host_priors(past(cell_id=host, hosts=host, mean_step_seconds=s) for host, s in trials)
        is None
    )


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.COST_STOPPED,
        Outcome.CAPACITY_UNAVAILABLE,
        Outcome.QUOTA_EXCEEDED,
        Outcome.IMAGE_ERROR,
        Outcome.PERMISSION_ERROR,
        Outcome.USER_CODE_ERROR,
        Outcome.INTERNAL_ERROR,
        Outcome.STOPPED_BY_USER,
    ],
)
def test_a_run_ended_by_something_else_tells_nothing(outcome: Outcome) -> None:
    assert learn_from(small_suite(), [past(outcome=outcome)]) == {}


@pytest.mark.parametrize(
    ("max_steps", "earlier", "billable"),
    [
        (500, {}, 450.0),  # 300 more steps of half a second
        # out of memory at the same place, however many steps are asked for
        (500, {"outcome": Outcome.OUT_OF_MEMORY}, 300.0),
        # a run that ended before its bound does not grow with it
        (500, {"steps": 80}, 300.0),
        (20, {"steps": 80}, 270.0),  # 60 steps less
        # steps that are not known are not reckoned with
        (500, {"steps": None}, None),
        (200, {"steps": None}, 300.0),
    ],
)
def test_more_or_fewer_steps_than_last_time_take_their_own_time(
    max_steps: int, earlier: dict[str, Any], billable: float | None
) -> None:
    learned = learn_from(small_suite(measurement={"max_steps": max_steps}), [past(**earlier)]).get(
        "cell"
    )
    assert (learned and learned.billable_seconds) == billable
    assert learned is None or learned.seconds == learned.billable_seconds + 120


@pytest.mark.parametrize(
    ("given", "earlier", "billable"),
    [
        ({"least_seconds": 2}, {"steps": 260}, 300.0),  # it had set its own number
        ({}, {"steps": 260}, 270.0),  # 60 steps of half a second less
        ({"least_seconds": 200}, {"steps": 200}, 401.0),  # 400 steps and two of the warm-up
        ({"least_seconds": 2}, {"steps": 200}, 300.0),  # 200 steps last longer
        ({"least_seconds": 200, "max_steps": 100}, {"steps": 200}, 401.0),
    ],
)
def test_a_run_with_its_own_number_of_steps_is_expected_to_repeat_it(
    given: dict[str, Any], earlier: dict[str, Any], billable: float
) -> None:
    suite = small_suite(measurement={"max_steps": 200, **given})
    assert learn_from(suite, [past(**earlier)])["cell"].billable_seconds == billable


def test_a_script_with_a_short_run_is_told_so(snapshot: Snapshot) -> None:
    suite = parse_suite(script_document())
    cell = suite.cells[0].cell_id
    runs = [{"steps": 20, "mean_step_seconds": 0.05}, {"steps": 20, "mean_step_seconds": 0.5}]

    def told(*earlier: dict[str, Any]) -> str | None:
        histories = learn_from(suite, [past(cell_id=cell, **changes) for changes in earlier])
        return short_script_text(suite, plan(suite, *histories.values()))

    snapshot(told(*runs) or "")
    assert told(runs[1]) is None
    assert told({**runs[0], "outcome": Outcome.TIMED_OUT}) is None


def test_a_script_keeps_to_no_bound_of_ours() -> None:
    suite = parse_suite(script_document(measurement={"max_steps": 500}))
    assert learn_from(suite, [past()])["cell"].billable_seconds == 300.0


def test_no_run_is_expected_to_be_billed_for_longer_than_its_attempts_can_be() -> None:
    # 480 s for the image, 10 s, 120 s to stop, 300 s to upload and 60 s of margin
    suite = small_suite(limits={**LIMITS, "max_job_seconds": 10})
    assert learn_from(suite, [past(billable_seconds=1200.0)])["cell"].billable_seconds == 970.0
    assert (
        learn_from(suite, [past(billable_seconds=1200.0, attempts=2)])["cell"].billable_seconds
        == 1200.0
    )
    once = small_suite(limits={**LIMITS, "max_job_seconds": 10, "max_attempts": 1})
    assert (
        learn_from(once, [past(billable_seconds=1200.0, attempts=2)])["cell"].billable_seconds
        == 970.0
    )


def test_work_is_the_same_whatever_the_goal_the_limits_and_the_matrix() -> None:
    suite = small_suite()
    same = small_suite(
        name="other",
        goal="fastest",
        limits={"max_usd": 1, "max_hours": 1, "max_job_seconds": 60},
        notes="x",
        matrix={"compiler": ["none"]},
        measurement={"trials": 9, "max_steps": 7},
    )
    assert work_id_of(same) == work_id_of(suite)
    workload = small_document()["workload"]
    for changes in (
        {"workload": {**workload, "examples": 10001}},
        {"workload": {**workload, "dataset": {"path": "s3://bucket/data/other/"}}},
        {"measurement": {"trials": 2, "save_model": True}},
        {"purchase": "spot"},
        {"workload": {**workload, "full_run": {"checkpoint_every_minutes": 10}}},
        {"workload": {**workload, "full_run": {"evaluate_every_steps": 1000}}},
    ):
        assert work_id_of(small_suite(**changes)) != work_id_of(suite)
    # Their jobs do the same: one checkpoint.
    minutes = (
        {"workload": {**workload, "full_run": {"checkpoint_every_minutes": minutes_between}}}
        for minutes_between in (10, 30)
    )
    assert len({work_id_of(small_suite(**changes)) for changes in minutes}) == 1
    targets = [
        {"goal": {"fastest-to": {"loss": loss}}, "measurement": {"evaluate_every_steps": 5}}
        for loss in (2, 3)
    ]
    # Runs end at the target, so they are of another length.
    assert len({work_id_of(small_suite(**changes)) for changes in targets}) == 2


def test_expected_cost_and_time_by_hand(snapshot: Snapshot) -> None:
    suite = small_suite(limits=LIMITS)
    first, second = (cell.cell_id for cell in suite.cells)
    planned = plan(
        suite, history(first, billable=300, seconds=400), history(second, billable=600, seconds=700)
    )
    # 2 trials of each: 2 x 300 + 2 x 600 = 1800 s at $3.6/h
    assert planned.expected.usd == Decimal("1.8")
    # all four at once: the longest
    assert planned.expected.hours == Decimal("700.0") / 3600
    assert (planned.expected.past_runs, planned.lanes[0].expected.usd) == (6, Decimal("1.8"))
    # two at a time, in their order 400 700 400 700: the third begins at 400, the fourth at 700
    narrow = plan(
        suite,
        history(first, billable=300, seconds=400),
        history(second, billable=600, seconds=700),
        usage=2,
    )
    assert narrow.expected.hours == Decimal("1400.0") / 3600
    snapshot(expected_cost_text(planned.expected, why_none=None))
    snapshot(expected_time_text(planned.expected))


def test_an_unknown_cost_has_its_reason(snapshot: Snapshot) -> None:
    suite = small_suite(limits=LIMITS)
    first = suite.cells[0].cell_id
    in_part = plan(suite, history(first, billable=300, seconds=400, runs=1)).expected
    snapshot(expected_cost_text(in_part, why_none=None))
    nothing = plan(suite).expected
    snapshot(expected_cost_text(nothing, why_none=None))
    assert (
        expected_cost_text(nothing, why_none="no lab here") == "expected cost unknown: no lab here"
    )
    assert expected_time_text(in_part) == expected_time_text(nothing)
    assert expected_time_text(nothing).startswith("expected time unknown: no basis")
