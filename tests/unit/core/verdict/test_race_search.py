"""A race: every cell runs once, and the contenders run again, forward and backward, until the
answer is settled.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import completed_result, failed_result, known, make_suite
from tests.unit.verdict_samples import make_rival, make_verdict
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import OutpacedBound
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import SCATTER
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import GoalKind, Jobs, Search
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Measurement, Run, Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import MOST_UNTOLD, is_futile, plan_round
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.selection import Relation, ToDecide

BATCHES = (1, 2, 4, 8)
NOISE = (1.0, 1.001, 0.999)


def suite_of(trials: int = 9, jobs: Jobs = Jobs.SHARED) -> Suite:
    return make_suite(
        goal=Goal(kind=GoalKind.FASTEST),
        examples=1_000_000,
        training={"instance": "ml.p4d.24xlarge"},
        matrix={"batch_size_per_device": BATCHES},
        search=Search.RACE,
        measurement=Measurement(trials=trials, jobs=jobs),
    )


def cell_of(suite: Suite, batch: int) -> Cell:
    return next(cell for cell in suite.cells if cell.settings.batch_size_per_device == batch)


def done(
    suite: Suite, batch: int, trial: int, seconds: float, outcome: Outcome | None = None
) -> RunResult:
    cell = cell_of(suite, batch)
    is_shared = suite.measurement.jobs is Jobs.SHARED
    result = (
        failed_result(cell, trial, outcome)
        if outcome
        else completed_result(
            cell, trial, step_seconds=seconds * NOISE[(batch + trial) % 3], suite=suite
        )
    )
    number, turn = (1, 1) if trial == 1 else (1 + trial // 2, 1 + trial % 2)
    block = f"{number}.{turn}" if is_shared else f"{trial}.1"
    run = replace(result.run, job_id=f"job-{number}" if is_shared else None, block=block)
    if outcome is Outcome.OUTPACED:
        bound = OutpacedBound(by="e-1", least_ratio=1.2, steps=5)
        result = replace(result, attempts=(replace(result.attempts[-1], bound=bound),))
    return replace(result, run=run)


def told(verdict: Verdict) -> str:
    text = describe_verdict(verdict)
    return " ".join((text.headline, *text.support))


def first_round(suite: Suite, seconds: Mapping[int, float]) -> list[RunResult]:
    return [done(suite, batch, 1, value) for batch, value in seconds.items()]


def planned(suite: Suite, results: list[RunResult], number: int = 2) -> tuple[Run, ...]:
    return plan_round(suite, suite.cells, execution_id="e", round_number=number, results=results)


def named(runs: tuple[Run, ...]) -> list[tuple[int, int]]:
    return sorted((run.cell.settings.batch_size, run.trial) for run in runs)


def test_every_cell_runs_once_at_first() -> None:
    suite = suite_of()
    assert named(planned(suite, [], 1)) == [(batch, 1) for batch in BATCHES]


def test_the_contenders_run_twice_in_a_further_job() -> None:
    suite = suite_of()
    runs = planned(suite, first_round(suite, {1: 1.0, 2: 1.05, 4: 1.2, 8: 1.3}))
    assert named(runs) == [(1, 2), (1, 3), (2, 2), (2, 3)]
    assert {run.block for run in runs} == {"2.1", "2.2"}


def test_contenders_run_once_in_jobs_of_their_own() -> None:
    """Such jobs have nothing in common that a second run in them would take out."""
    suite = suite_of()
    results = first_round(suite, {1: 1.0, 2: 1.05, 4: 1.2, 8: 1.3})
    alone = [
        replace(result, run=replace(result.run, job_id=f"job-{number}"))
        for number, result in enumerate(results)
    ]
    assert named(planned(suite, alone)) == [(1, 2), (2, 2)]


def test_outpaced_and_failed_cells_do_not_run_again_but_lost_ones_do() -> None:
    suite = suite_of()
    results = [
        *first_round(suite, {1: 1.0}),
        done(suite, 2, 1, 1.0, Outcome.OUTPACED),
        done(suite, 4, 1, 1.0, Outcome.OUT_OF_MEMORY),
        done(suite, 8, 1, 1.0, Outcome.INTERNAL_ERROR),
    ]
    assert named(planned(suite, results)) == [(8, 2)]
    results += [
        done(suite, 8, trial, 1.0, Outcome.INTERNAL_ERROR) for trial in range(2, MOST_UNTOLD + 1)
    ]
    assert named(planned(suite, results, 3)) == [(1, 2), (1, 3)]


def rerun(
    suite: Suite, results: list[RunResult], seconds: Mapping[int, float], *trials: int
) -> list[RunResult]:
    return [
        *results,
        *(done(suite, batch, trial, value) for trial in trials for batch, value in seconds.items()),
    ]


def test_a_lead_settled_by_the_tests_ends_the_race(snapshot: Snapshot) -> None:
    suite = suite_of()
    first = first_round(suite, {1: 1.0, 2: 1.06, 4: 1.2, 8: 1.3})
    results = rerun(suite, first, {1: 1.0, 2: 1.06}, 2, 3)
    assert planned(suite, results, 3) == ()
    verdict = judge(suite, suite.cells, results)
    assert verdict.finding is Finding.RECOMMENDED
    assert verdict.recommended == cell_of(suite, 1).cell_id
    assert [rival.cell_id for rival in verdict.rivals] == [cell_of(suite, 2).cell_id]
    snapshot(told(verdict))


def test_an_open_answer_goes_on_until_the_trials_are_used_up() -> None:
    suite = suite_of(trials=5)
    cells = {1: 1.0, 2: 1.03}
    results = first_round(suite, {1: 1.0, 2: 1.03, 4: 1.2, 8: 1.3})
    noisy = [
        done(suite, 1, 2, 0.96),
        done(suite, 2, 2, 1.03),
        done(suite, 1, 3, 1.04),
        done(suite, 2, 3, 1.03),
    ]
    assert named(planned(suite, [*results, *noisy], 3)) == [
        (batch, trial) for batch in cells for trial in (4, 5)
    ]
    more = [
        done(suite, 1, 4, 1.05),
        done(suite, 2, 4, 1.03),
        done(suite, 1, 5, 0.97),
        done(suite, 2, 5, 1.03),
    ]
    assert planned(suite, [*results, *noisy, *more], 4) == ()


def test_a_dropped_cell_hidden_from_the_sole_leader_by_noise_runs_again() -> None:
    suite = suite_of()
    first = first_round(suite, {1: 1.0, 2: 1.09, 4: 1.6, 8: 1.7})
    assert named(planned(suite, first)) == [(1, 2), (1, 3)]
    noisy = [*first, done(suite, 1, 2, 1.12), done(suite, 1, 3, 0.98)]
    assert named(planned(suite, noisy, 3)) == [(1, 4), (1, 5), (2, 2), (2, 3)]
    assert planned(suite, [*first, done(suite, 1, 2, 1.001), done(suite, 1, 3, 0.999)], 3) == ()
    verdict = judge(suite, suite.cells, noisy)
    assert (verdict.finding, *verdict.dropped) == (
        Finding.TOO_FEW_TRIALS,
        *(cell_of(suite, b).cell_id for b in (4, 8)),
    )


@pytest.mark.parametrize(("second", "comes_back"), [(1.6, True), (1.0, False)])
def test_a_dropped_cell_has_to_be_5_percent_behind_a_sole_leader_only(
    second: float, comes_back: bool
) -> None:
    suite = suite_of()
    results = first_round(suite, {1: 1.0, 2: second, 4: 1.095, 8: 1.6})
    leaders = {batch for batch, _ in named(planned(suite, results))}
    results = rerun(suite, results, dict.fromkeys(leaders, 1.05), 2, 3)
    again = {batch for batch, _ in named(planned(suite, results, 3))}
    assert (4 in again) is comes_back


@pytest.mark.parametrize("seconds", [1.3, 1.101])
def test_a_stopped_race_has_no_answer_beside_an_equally_fast_dropped_cell(
    snapshot: Snapshot, seconds: float
) -> None:
    """The leader's second run was slower, in a job of its own."""
    suite = suite_of(jobs=Jobs.SEPARATE)
    results = [*first_round(suite, {1: 1.0, 2: 1.11, 4: 1.6, 8: 1.7}), done(suite, 1, 2, seconds)]
    verdict = judge(suite, suite.cells, results)
    assert verdict.finding is Finding.TOO_FEW_TRIALS
    snapshot(told(verdict))


def test_a_sole_leader_says_that_none_came_near_it(snapshot: Snapshot) -> None:
    suite = suite_of()
    results = [
        *first_round(suite, {1: 1.0, 2: 1.2}),
        done(suite, 4, 1, 1.0, Outcome.OUTPACED),
        done(suite, 8, 1, 1.0, Outcome.OUTPACED),
    ]
    assert named(planned(suite, results)) == [(1, 2), (1, 3)]
    results = rerun(suite, results, {1: 1.0}, 2, 3)
    assert planned(suite, results, 3) == ()
    verdict = judge(suite, suite.cells, results)
    assert verdict.finding is Finding.ONLY_ONE
    snapshot(told(verdict))


def test_a_sole_leader_is_as_far_ahead_in_the_table_as_its_headline_says(
    snapshot: Snapshot,
) -> None:
    """Its further runs were slower, as on other hosts."""
    suite = suite_of()
    results = [*first_round(suite, {1: 1.0, 2: 1.25}), done(suite, 4, 1, 1.0, Outcome.OUTPACED)]
    results += [
        done(suite, 8, 1, 1.0, Outcome.OUTPACED),
        done(suite, 1, 2, 1.08),
        done(suite, 1, 3, 1.08),
    ]
    verdict = judge(suite, suite.cells, results)
    best, second = (row.estimate(verdict.metric) for row in verdict.ranked_rows[:2])
    behind = known(second).mean / known(best).mean - 1
    assert behind == pytest.approx(0.25, abs=0.003)
    assert f"{100 * behind:.0f} % slower" in told(verdict)
    snapshot(told(verdict))


def test_a_cell_dropped_too_near_comes_back() -> None:
    """Three runs of the leader that scatter by 4 % say that a single run is 11 % behind by
    chance.
    """
    suite = suite_of()
    results = first_round(suite, {1: 1.0, 2: 1.11, 4: 1.6, 8: 1.6})
    assert named(planned(suite, results)) == [(1, 2), (1, 3)]
    results += [done(suite, 1, 2, 1.08), done(suite, 1, 3, 1.08)]
    assert named(planned(suite, results, 3)) == [(1, 4), (1, 5), (2, 2), (2, 3)]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (2.9, "was fastest, but cells with one trial can't be compared."),
        (3.1, "Use batch 1: every other cell was more than 5 % slower."),
    ],
)
def test_one_run_of_this_machine_says_little(seconds: float, said: str) -> None:
    suite = replace(suite_of(trials=3), training={"instance": "local.cpu"})
    results = rerun(suite, first_round(suite, {1: 1.0, 2: seconds}), {1: 1.0}, 2, 3)
    assert said in told(judge(suite, suite.cells, results))


@pytest.mark.parametrize(
    ("measured", "least", "most"), [({}, 0.09, 0.12), ({SCATTER: "0.01"}, 0.0, 0.01)]
)
def test_a_measurement_of_this_machine_replaces_the_assumption(
    measured: Mapping[str, str], least: float, most: float
) -> None:
    suite = replace(suite_of(trials=3), training={"instance": "local.cpu"})
    results = rerun(suite, first_round(suite, {1: 1.0, 2: 2.1}), {1: 1.0}, 2, 3)
    logged = [
        replace(result, environment=replace(log, facts={**log.facts, **measured}))
        for result in results
        for log in [known(result.environment)]
    ]
    scatter = judge(suite, suite.cells, logged).scatter.share
    assert least < scatter < most


def test_a_cell_outpaced_by_an_unknown_share_is_not_said_to_be_far(
    snapshot: Snapshot,
) -> None:
    suite = suite_of(trials=3)
    ended = done(suite, 2, 1, 1.0, Outcome.OUTPACED)
    ended = replace(ended, attempts=(replace(ended.attempts[-1], bound=None),))
    results = rerun(suite, [*first_round(suite, {1: 1.0}), ended], {1: 1.0}, 2, 3)
    verdict = judge(suite, suite.cells, results)
    assert verdict.finding is Finding.TOO_FEW_TRIALS
    snapshot(told(verdict))


def test_a_contender_with_lost_further_runs_runs_again() -> None:
    suite = suite_of()
    results = rerun(suite, first_round(suite, {1: 1.0, 2: 1.03, 4: 1.3, 8: 1.3}), {2: 1.03}, 2, 3)
    results += [done(suite, 1, trial, 1.0, Outcome.INTERNAL_ERROR) for trial in (2, 3)]
    assert named(planned(suite, results, 3)) == [(1, 4), (1, 5), (2, 4), (2, 5)]
    short = suite_of(trials=3)
    verdict = judge(short, short.cells, results)
    assert verdict.finding is Finding.TOO_FEW_TRIALS
    assert verdict.recommended == cell_of(suite, 1).cell_id
    assert "no other cell" not in told(verdict)


@pytest.mark.parametrize("outcome", [Outcome.OUT_OF_MEMORY, Outcome.LOSS_DIVERGED])
def test_if_the_leader_fails_the_next_ones_contend(snapshot: Snapshot, outcome: Outcome) -> None:
    suite = suite_of()
    results = first_round(suite, {1: 1.0, 2: 1.09, 4: 1.1, 8: 1.3})
    assert named(planned(suite, results)) == [(1, 2), (1, 3)]
    results += [done(suite, 1, trial, 1.0, outcome) for trial in (2, 3)]
    assert named(planned(suite, results, 3)) == [(2, 2), (2, 3), (4, 2), (4, 3)]
    verdict = judge(suite, suite.cells, rerun(suite, results, {2: 1.09, 4: 1.15}, 2, 3))
    assert verdict.recommended == cell_of(suite, 2).cell_id
    assert verdict.ranked_rows[0].cell_id == verdict.recommended
    snapshot(told(verdict))


@pytest.mark.parametrize("outcome", [Outcome.OUT_OF_MEMORY, Outcome.LOSS_DIVERGED])
def test_a_cell_outpaced_only_by_a_failing_one_runs_again(outcome: Outcome) -> None:
    """Being behind that cell tells nothing of the others: without its own figure, no other is the
    fastest.
    """
    suite = suite_of()
    behind = done(suite, 2, 1, 1.12, Outcome.OUTPACED)
    by = done(suite, 1, 1, 1.0)
    bound = OutpacedBound(by=by.run.run_id, least_ratio=1.05, steps=5)
    behind = replace(
        behind, attempts=tuple(replace(attempt, bound=bound) for attempt in behind.attempts)
    )
    results = [done(suite, 4, 1, 1.3), by, behind, done(suite, 8, 1, 1.6)]
    assert named(planned(suite, results)) == [(1, 2), (1, 3)]
    failed = [done(suite, 1, trial, 1.0, outcome) for trial in (2, 3)]
    assert named(planned(suite, [*results, *failed], 3)) == [(2, 2)]


def test_a_race_settled_only_by_other_hosts_goes_on() -> None:
    """A further job is another draw of hosts."""
    rivals = (make_rival(relation=Relation.OPEN),)
    for needs_other_hosts in (False, True):
        verdict = make_verdict(rivals=rivals, to_decide=ToDecide(other_hosts=needs_other_hosts))
        assert is_futile(suite_of(), verdict) is not needs_other_hosts


@pytest.mark.parametrize(
    ("jobs", "trials", "looks"),
    [
        (Jobs.SHARED, 3, 1),
        (Jobs.SHARED, 4, 2),
        (Jobs.SHARED, 5, 2),
        (Jobs.SHARED, 9, 4),
        (Jobs.SEPARATE, 6, 5),
    ],
)
def test_the_looks_after_further_jobs_share_the_significance_and_a_grid_has_one(
    jobs: Jobs, trials: int, looks: int
) -> None:
    suite = suite_of(trials, jobs)
    results = rerun(suite, first_round(suite, {1: 1.0, 2: 1.05}), {1: 1.0, 2: 1.05}, 2, 3)
    verdict = judge(suite, suite.cells, results)
    assert verdict.significance == pytest.approx(0.05 / looks)
    grid = replace(suite, search=Search.GRID)
    assert judge(grid, grid.cells, results).significance == 0.05


@pytest.mark.parametrize(("trials", "looks"), [(9, 2), (13, 3), (3, 1)])
def test_a_race_of_this_machine_is_judged_after_every_four_runs(trials: int, looks: int) -> None:
    suite = replace(suite_of(trials), training={"instance": "local.cpu"})
    seconds = {1: 1.0, 2: 1.3}
    results = rerun(suite, first_round(suite, seconds), seconds, 2, 3)
    verdict = judge(suite, suite.cells, results)
    assert verdict.significance == pytest.approx(0.007 / looks)
    assert verdict.level == 0.007


def test_figures_of_a_pair_have_intervals_of_one_level_and_of_one_width() -> None:
    suite = replace(suite_of(), training={"instance": "local.cpu"})
    seconds = {1: 1.0, 2: 1.9}
    results = rerun(suite, first_round(suite, seconds), seconds, 2)
    verdict = judge(suite, suite.cells, results)
    assert verdict.finding is Finding.RECOMMENDED
    (rival,) = verdict.rivals
    assert known(rival.comparison.interval).confidence == pytest.approx(1 - 0.007 / 2)
    for row in map(verdict.row, (known(verdict.recommended), rival.cell_id)):
        shares = []
        for estimate in (row.seconds, row.billable_seconds, row.samples_per_second):
            interval = known(known(estimate).interval)
            shares.append(interval.high / interval.low)
        assert known(known(row.billable_seconds).interval).confidence == pytest.approx(
            1 - 0.007 / 2
        )
        assert shares == pytest.approx([shares[0]] * 3, rel=0.05)
        one_run = known(known(row.prediction).seconds)
        assert shares[0] <= one_run.high / one_run.low
