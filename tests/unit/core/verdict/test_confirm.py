"""``confirm``: the two leaders run once more, for as long as the suite says, and their long runs
decide.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.cli.test_job_table import text_of
from tests.unit.core.planning.test_plan import plan_with_quotas
from tests.unit.core.verdict.test_race_search import cell_of, done, suite_of
from tests.unit.run_samples import completed_result, known, remeasured
from tests.unit.suites import says, script_document, small_document, unprepared_suite
from traindyno.cli.display.plan_totals import totals_table
from traindyno.core.errors import SuiteInvalid
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log import line
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite import Confirm, Run, Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.core.verdict.verdict import Finding
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.sagemaker.launcher import own_hyperparameters

# Seconds of a step by batch: 8 leads by 3 %, 1 and 2 are far behind.
TRIALS = {1: 2.0, 2: 1.9, 4: 1.03, 8: 1.0}


def confirmed_suite(minutes: float = 20) -> Suite:
    suite = suite_of()
    return replace(suite, measurement=replace(suite.measurement, confirm=Confirm(minutes=minutes)))


def race(suite: Suite) -> list[RunResult]:
    results = [done(suite, batch, 1, seconds) for batch, seconds in TRIALS.items()]
    return [
        *results,
        *(done(suite, batch, trial, TRIALS[batch]) for batch in (4, 8) for trial in (2, 3)),
    ]


def planned(suite: Suite, results: list[RunResult], number: int = 3) -> tuple[Run, ...]:
    return plan_round(suite, suite.cells, execution_id="e", round_number=number, results=results)


def long_run(suite: Suite, run: Run, seconds: float) -> RunResult:
    return replace(
        completed_result(run.cell, run.trial, step_seconds=seconds, suite=suite), run=run
    )


def test_the_two_leaders_run_once_more_for_as_long_as_the_suite_says() -> None:
    suite = confirmed_suite()
    runs = planned(suite, race(suite))
    assert {run.cell.settings.batch_size: run.trial for run in runs} == {4: 10, 8: 10}
    # 20 min at 1.03 and 1 s a step, which scatter by 1 ‰
    assert {run.cell.settings.batch_size: run.confirming_steps for run in runs} == pytest.approx(
        {4: 1165, 8: 1200}, abs=2
    )
    after = [*race(suite), *(long_run(suite, run, 1.0) for run in runs)]
    assert planned(suite, after, 4) == ()
    assert all(
        run.confirming_steps == 125_000 for run in planned(confirmed_suite(10**6), race(suite))
    )


def test_a_long_run_replaces_the_projection_and_decides_against_the_trials() -> None:
    suite = confirmed_suite()
    four, eight = (
        next(run for run in planned(suite, race(suite)) if run.cell == cell_of(suite, b))
        for b in (4, 8)
    )
    results = [*race(suite), long_run(suite, four, 1.03), long_run(suite, eight, 1.12)]
    verdict = judge(suite, suite.cells, results)
    assert (verdict.recommended, verdict.finding) == (four.cell.cell_id, Finding.RECOMMENDED)
    rows = {row.cell_id: row for row in verdict.rows}
    seconds = known(rows[eight.cell.cell_id].seconds)
    assert seconds.mean == pytest.approx(125_000 * 1.12, rel=0.01)
    assert seconds.interval is not None
    assert (rows[eight.cell.cell_id].trials, rows[eight.cell.cell_id].outcomes) == (
        3,
        {"completed": 4},
    )


def test_a_long_run_is_projected_to_as_much_work_as_the_trials() -> None:
    """An example of 8 holds twice the tokens, so that it leads at as many samples per second."""
    suite = confirmed_suite()
    facts = {line.WORK_UNIT: line.TOKENS}

    def run_of(batch: int, trial: int, confirming_steps: int | None = None) -> RunResult:
        result = completed_result(
            cell_of(suite, batch), trial, step_seconds=1 + trial / 1000, suite=suite, facts=facts
        )
        run = replace(result.run, confirming_steps=confirming_steps)
        tokens = known(known(result.throughput).tokens) * (2 if batch == 8 else 1)
        return remeasured(replace(result, run=run), tokens=tokens)

    trials = [run_of(batch, trial) for batch in (4, 8) for trial in (1, 2, 3)]
    long = [run_of(batch, 10, confirming_steps=1200) for batch in (4, 8)]
    before, after = (judge(suite, suite.cells, judged) for judged in (trials, [*trials, *long]))
    eight = cell_of(suite, 8).cell_id
    assert (before.recommended, after.recommended) == (eight, eight)
    assert known(after.row(eight).seconds).mean == pytest.approx(
        known(before.row(eight).seconds).mean, rel=0.02
    )


@pytest.mark.parametrize(
    ("outcome", "runs_again"),
    [
        (Outcome.OUT_OF_MEMORY, False),
        (Outcome.TIMED_OUT, False),
        (Outcome.CAPACITY_UNAVAILABLE, True),
        (Outcome.INTERNAL_ERROR, True),
    ],
)
def test_a_lost_long_run_is_said_and_figures_and_decision_are_of_trials(
    snapshot: Snapshot, outcome: Outcome, runs_again: bool
) -> None:
    """One that a fault has lost runs once more."""
    suite = confirmed_suite()
    raced = race(suite)
    runs = {run.cell.cell_id: run for run in planned(suite, raced)}
    failed, other = (runs[cell_of(suite, batch).cell_id] for batch in (4, 8))
    lost = replace(done(suite, 4, 10, 1.0, outcome), run=failed)
    results = [*raced, lost, long_run(suite, other, 1.12)]
    again = planned(suite, results, 4)
    assert [(run.cell, run.trial, run.confirming_steps) for run in again] == (
        [(failed.cell, 11, failed.confirming_steps)] if runs_again else []
    )
    verdict, before = (judge(suite, suite.cells, judged) for judged in (results, raced))
    assert verdict.recommended == other.cell.cell_id
    assert known(verdict.row(other.cell.cell_id).seconds).mean == pytest.approx(
        known(before.row(other.cell.cell_id).seconds).mean,
        rel=0.002,  # how often a type is interrupted is also seen in what was lost
    )
    said = describe_verdict(verdict).certainty
    snapshot(said)
    four = verdict.row(failed.cell.cell_id)
    assert four.failed == (outcome is Outcome.OUT_OF_MEMORY)
    for run in again:
        results.append(replace(lost, run=run))
        assert planned(suite, results, 5) == ()
        assert judge(suite, suite.cells, results).recommended == other.cell.cell_id
        confirmed = [*results[:-1], long_run(suite, run, 1.03)]
        assert judge(suite, suite.cells, confirmed).recommended == failed.cell.cell_id


def test_a_long_run_over_its_limit_is_no_failure_of_its_cell() -> None:
    suite = confirmed_suite()
    raced = race(suite)
    runs = {run.cell.cell_id: run for run in planned(suite, raced)}
    timed_out = [
        replace(done(suite, batch, 10, 1.0, Outcome.TIMED_OUT), run=runs[cell.cell_id])
        for batch, cell in ((batch, cell_of(suite, batch)) for batch in (4, 8))
    ]
    confirmed, before = (judge(suite, suite.cells, judged) for judged in (raced + timed_out, raced))
    assert (confirmed.recommended, confirmed.finding) == (before.recommended, before.finding)
    for row, earlier in zip(confirmed.rows, before.rows, strict=True):
        assert known(row.seconds).mean == pytest.approx(known(earlier.seconds).mean, rel=0.002)
        assert row.failed == 0


def test_a_job_trains_for_the_steps_of_its_long_run() -> None:
    suite = unprepared_suite(
        measurement={
            "trials": 2,
            "confirm": {"minutes": 2},
            "stop_when": {"relative_half_width": 0.01},
        }
    )
    run = Run(run_id="a-t3", execution_id="e", trial=3, cell=suite.cells[0], confirming_steps=4321)
    measurement = own_hyperparameters(run, suite)["measurement"]
    assert measurement["max_steps"] == 4321
    assert not measurement.keys() & {"stop_when", "confirm"}
    script = parse_suite(
        script_document(measurement={"confirm": {"minutes": 2, "argument": "max_steps"}})
    )
    own = replace(run, cell=script.cells[0])
    assert own_hyperparameters(own, script)["max_steps"] == 4321
    assert "max_steps" not in own_hyperparameters(replace(own, confirming_steps=None), script)


def test_the_plan_shows_the_price_and_counts_it(snapshot: Snapshot) -> None:
    alone = unprepared_suite()
    confirmed = unprepared_suite(measurement={"trials": 2, "confirm": {"minutes": 10}})
    plans = [plan_with_quotas(suite) for suite in (alone, confirmed)]
    assert plans[1].run_count == plans[0].run_count + 2
    assert plans[0].one_attempt_usd is not None
    assert plans[1].one_attempt_usd == plans[0].one_attempt_usd * Decimal(3) / 2
    totals = " ".join(text_of(totals_table(confirmed, plans[1], None)).split())
    # 2 × 10 min at $1.408
    snapshot(totals)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"measurement": {"confirm": {"minutes": 0}}}, "measurement.confirm.minutes: got 0"),
        ({"measurement": {"confirm": {}}}, "measurement.confirm.minutes: got nothing"),
        (
            {"measurement": {"confirm": {"minutes": 30}}},
            "limits.max_job_seconds: got 1800, expected at least 5160",
        ),
        (
            {"measurement": {"confirm": {"minutes": 2, "argument": "steps"}}},
            "measurement.confirm.argument: got",
        ),
        (
            {"goal": {"fastest-to": {"loss": 2}}, "measurement": {"confirm": {"minutes": 2}}},
            "measurement.confirm: a run",
        ),
    ],
)
def test_an_unconfirmable_race_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SuiteInvalid) as refused:
        parse_suite(small_document(**changes))
    texts = [f"{refusal.path}: {refusal.message}" for refusal in refused.value.problems]
    assert any(says(text, problem) for text in texts), texts


def test_a_script_has_to_name_its_argument_for_the_number_of_steps() -> None:
    with pytest.raises(SuiteInvalid, match=r"confirm\.argument.*its number of steps"):
        parse_suite(script_document(measurement={"confirm": {"minutes": 2}}))
