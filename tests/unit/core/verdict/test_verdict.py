import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import (
    PRICE,
    completed_results,
    failed_result,
    known,
    make_suite,
    remeasured,
)
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.measurement.stalls import OneTimeEvent
from traindyno.core.run.workload import FullRun
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import GoalKind, Strategy
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import Finding, Verdict, parse_verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.selection import Relation
from traindyno.figures.table import FigureColumn

STRATEGIES = (Strategy.DDP, Strategy.FSDP, Strategy.ZERO1)
CHEAPEST = Goal(kind=GoalKind.CHEAPEST)
FASTEST = Goal(kind=GoalKind.FASTEST)


def suite_of(
    goal: Goal = CHEAPEST, *, instances: Sequence[str] = (), examples: int = 100_000
) -> Suite:
    matrix: dict[str, Any] = (
        {"instance": tuple(instances)} if instances else {"strategy": STRATEGIES}
    )
    training = {} if instances else {"instance": "ml.p4d.24xlarge"}
    return make_suite(goal=goal, examples=examples, matrix=matrix, training=training)


def trials(
    suite: Suite,
    cell: Cell,
    step_seconds: Sequence[float],
    price: PaidPrice = PRICE,
    **changes: Any,
) -> list[RunResult]:
    return completed_results([cell], step_seconds, suite=suite, price=price, **changes)


def judged(suite: Suite, *step_seconds: Sequence[float], **changes: Any) -> Verdict:
    cells = suite.cells
    return judge(suite, cells, completed_results(cells, *step_seconds, suite=suite, **changes))


def test_a_clear_winner_is_recommended_with_its_margin(snapshot: Snapshot) -> None:
    suite = suite_of()
    verdict = judged(suite, [1.00, 1.01, 0.99], [1.20, 1.21, 1.19], [1.50, 1.51, 1.49])
    ddp, fsdp, _ = suite.cells
    assert verdict.finding is Finding.RECOMMENDED
    assert verdict.recommended == ddp.cell_id
    assert [rival.relation for rival in verdict.rivals] == [Relation.BEATEN, Relation.BEATEN]
    # work left 99,992 samples / 8 per step: 12,499 s at 1.0 s and 14,999 s at 1.2 s, plus 110 s:
    # ratio 0.8346
    assert verdict.runner_up is not None
    assert verdict.runner_up.cell_id == fsdp.cell_id
    assert verdict.runner_up.comparison.ratio == pytest.approx(
        (12_499 + 110) / (12_499 * 1.2 + 110), rel=1e-3
    )
    snapshot(describe_verdict(verdict).support[-1])


def test_runs_too_short_for_a_rate_say_how_many_steps_they_lack() -> None:
    suite = suite_of()
    reason = "too few steps to find the end of the warm-up: 1 of at least 6"
    short = [
        remeasured(result, throughput=None, is_reached=False, reason=reason)
        for result in completed_results(suite.cells, [1.0], [1.0], suite=suite)
    ]
    assert describe_verdict(judge(suite, suite.cells, short)).headline == (
        f"No cell was measured: the runs ended before a rate could be measured: {reason}."
    )


def test_noise_as_large_as_the_difference_names_the_number_of_deciding_trials() -> None:
    verdict = judged(suite_of(), [1.00, 1.06, 0.94], [1.08, 1.02, 0.96])
    assert verdict.finding is Finding.UNDECIDED
    assert [rival.relation for rival in verdict.rivals] == [Relation.OPEN]
    # no more than 2 % apart, with differences by round of -7.6, 3.8 and -2.1 %, a variance of
    # 0.00326: one-sided t(0.95, 2) = 2.920, t(0.8, 2) = 1.061; the difference seen, 2 %, adds to
    # the tolerance of 2 %: 0.00326 x (2.920 + 1.061)^2 / 0.0394^2 = 34
    assert (verdict.to_decide.trials, verdict.to_decide.is_script) == (34, False)


def test_a_cell_not_better_by_more_than_the_tolerance_settles_the_choice() -> None:
    """Whether fsdp is 0 or 4 % dearer is open, that it is not more than 2 % cheaper is not."""
    verdict = judged(suite_of(), [1.00, 1.01, 0.99, 1.0], [1.018, 1.003, 1.023, 1.008])
    assert verdict.finding is Finding.WITHIN_TOLERANCE
    assert [rival.relation for rival in verdict.rivals] == [Relation.NOT_BETTER]


def test_the_tolerance_is_the_suites() -> None:
    wide, narrow = (
        judged(replace(suite_of(), tolerance=tolerance), [1.0, 1.01, 0.99], [1.015, 1.005, 0.995])
        for tolerance in (0.1, 0.001)
    )
    assert (wide.finding, narrow.finding) == (Finding.WITHIN_TOLERANCE, Finding.UNDECIDED)


def test_one_trial_claims_nothing() -> None:
    verdict = judged(suite_of(), [1.0], [2.0])
    assert verdict.finding is Finding.TOO_FEW_TRIALS
    assert verdict.runner_up is not None
    assert (verdict.runner_up.relation, verdict.runner_up.comparison.interval) == (
        Relation.UNKNOWN,
        None,
    )
    assert all(
        row.usd is not None and row.usd.interval is None for row in verdict.rows if row.trials
    )


def test_a_cell_without_a_completed_run_is_listed_with_its_outcome() -> None:
    suite = suite_of()
    cells = suite.cells
    results = trials(suite, cells[0], [1.0, 1.0])
    results += [
        failed_result(cells[1], trial, Outcome.OUT_OF_MEMORY, "CUDA out of memory")
        for trial in (1, 2)
    ]
    verdict = judge(suite, cells, results)
    assert verdict.finding is Finding.ONLY_ONE
    row = verdict.row(cells[1].cell_id)
    assert row.outcomes == {"out_of_memory": 2}
    assert (row.trials, row.usd, row.message) == (0, None, "CUDA out of memory")
    assert verdict.row(cells[2].cell_id).outcomes == {}


def test_a_headline_names_cells_without_a_result_and_the_baseline_among_them(
    snapshot: Snapshot,
) -> None:
    suite = suite_of()
    baseline, best, third = suite.cells
    late = [failed_result(baseline, trial, Outcome.TIMED_OUT, "still running") for trial in (1, 2)]
    own = trials(suite, best, [1.0, 1.01])
    text = "The baseline, ddp, has no result: the runs ended as timed out."
    only = describe_verdict(judge(suite, [baseline, best], [*late, *own])).headline
    snapshot(only)
    compared = judge(
        suite, [baseline, best, third], [*late, *own, *trials(suite, third, [2.0, 2.01])]
    )
    assert describe_verdict(compared).headline == f"Use fsdp: it is cheapest. {text}"
    assert parse_verdict(verdict_document(compared)) == compared
    other = [*trials(suite, baseline, [1.0, 1.01]), failed_result(best, 1, Outcome.TIMED_OUT)]
    snapshot(describe_verdict(judge(suite, [baseline, best], other)).headline)


def test_nothing_measured_says_so() -> None:
    suite = suite_of()
    cells = suite.cells
    verdict = judge(suite, cells, [failed_result(cells[0], 1, Outcome.USER_CODE_ERROR)])
    assert verdict.finding is Finding.NONE_MEASURED
    assert verdict.recommended is None
    assert judge(suite, cells, []).finding is Finding.NONE_MEASURED


def test_cheapest_and_fastest_can_disagree() -> None:
    instances = ("ml.p4d.24xlarge", "ml.g5.12xlarge")
    prices = {"ml.p4d.24xlarge": Decimal(36), "ml.g5.12xlarge": Decimal(9)}

    def recommended(goal: Goal) -> str:
        suite = suite_of(goal, instances=instances)
        results = [
            result
            for cell, seconds in zip(suite.cells, (1.0, 2.0), strict=True)
            for result in trials(
                suite,
                cell,
                [seconds, seconds * 1.001],
                PaidPrice(usd_per_instance_hour=prices[cell.settings.instance]),
            )
        ]
        verdict = judge(suite, suite.cells, results)
        return verdict.row(verdict.recommended or "").instance

    assert recommended(FASTEST) == "ml.p4d.24xlarge"
    assert recommended(CHEAPEST) == "ml.g5.12xlarge"
    # 4 h at 1 s: (99,992 / 8 + 110) / 3600 = 3.50 h on p4d, 6.97 h on g5
    assert recommended(Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal(4))) == "ml.p4d.24xlarge"
    # $126.09 on p4d, $62.77 on g5
    assert recommended(Goal(kind=GoalKind.FASTEST_WITHIN, usd=Decimal(100))) == "ml.g5.12xlarge"


def test_a_limit_kept_by_no_cell_is_an_answer() -> None:
    verdict = judged(suite_of(Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal(1))), [1.0, 1.0])
    assert verdict.finding is Finding.NONE_WITHIN_LIMIT
    assert verdict.refused == {verdict.rows[0].cell_id: "it exceeds the goal's limit"}


def test_without_prices_one_instance_type_is_compared_by_instance_hours() -> None:
    verdict = judged(
        suite_of(), [1.0, 1.01], [1.3, 1.31], price=PaidPrice(usd_per_instance_hour=None)
    )
    assert verdict.metric is FigureColumn.INSTANCE_HOURS
    assert verdict.recommended == verdict.rows[0].cell_id
    assert verdict.spent_usd is None
    assert "compared by instance hours" in " ".join(describe_verdict(verdict).cautions)


def test_a_cell_without_a_price_can_not_be_called_cheapest() -> None:
    suite = suite_of(instances=("ml.p4d.24xlarge", "ml.g5.12xlarge"))
    priced, unpriced = suite.cells
    results = trials(suite, priced, [1.0, 1.0])
    results += trials(suite, unpriced, [0.1, 0.1], PaidPrice(usd_per_instance_hour=None))
    verdict = judge(suite, suite.cells, results)
    assert verdict.recommended == priced.cell_id
    assert verdict.refused == {unpriced.cell_id: "its price is unknown"}


def test_break_even_is_the_price_for_equal_costs_of_both_cells() -> None:
    # seed 4: 6033 s x 24.725 $/h against 6553 s: equal where 6553 s x price = 6033 s x 24.725,
    # 22.763 $/h
    suite = suite_of(instances=("ml.trn1.32xlarge", "ml.p4d.24xlarge"))
    trainium, p4d = suite.cells
    # billed is 100 + 10 + 60 x step seconds: overhead 110 s, then 12,499 steps
    steps = {trainium.cell_id: (6033 - 110) / 12_499, p4d.cell_id: (6553 - 110) / 12_499}
    results = [
        result
        for cell, usd in ((trainium, "24.725"), (p4d, "37.69"))
        for result in trials(
            suite, cell, [steps[cell.cell_id]] * 2, PaidPrice(usd_per_instance_hour=Decimal(usd))
        )
    ]
    verdict = judge(suite, suite.cells, results)
    assert verdict.recommended == trainium.cell_id
    (break_even,) = verdict.sensitivity.break_evens
    assert break_even.instance == "ml.p4d.24xlarge"
    assert float(break_even.usd_per_instance_hour) == pytest.approx(22.763, abs=1e-3)
    # 1 - (6033 x 24.725) / (6553 x 37.69): the published table's 39.6 %
    assert 1 - known(verdict.runner_up).comparison.ratio == pytest.approx(0.396, abs=5e-4)


def test_an_earlier_verdict_with_the_corrected_row_apart_is_read() -> None:
    suite = suite_of()
    first, second, _ = suite.cells
    results = [*trials(suite, first, [1.0, 1.01]), *trials(suite, second, [1.1, 1.12])]
    verdict = judge(suite, suite.cells, results)
    document = verdict_document(verdict)
    (best,) = (row for row in document["rows"] if row["cell_id"] == verdict.recommended)
    as_measured = {**best, "usd": None}
    rows = [as_measured if row is best else row for row in document["rows"]]
    assert parse_verdict({**document, "rows": rows, "expected": best}) == verdict
    assert parse_verdict({**document, "expected": None}) == verdict


@pytest.mark.parametrize("goal", [FASTEST, CHEAPEST])
def test_the_crossover_follows_the_schedule_of_the_full_run_as_the_figures_do(goal: Goal) -> None:
    """Each cell's line from its overhead to the figure of the table."""
    suite = suite_of(goal)
    cells = suite.cells
    slow_start = trials(suite, cells[0], [1.0, 1.0])
    quick_start = [_billed_less(result, 50) for result in trials(suite, cells[1], [1.1, 1.1])]
    results = [_with_schedule(result) for result in slow_start + quick_start]
    verdict = judge(suite, cells, results)
    (crossover,) = verdict.sensitivity.crossovers
    figures = [
        row.estimate(verdict.metric) for row in (known(verdict.best), verdict.row(cells[1].cell_id))
    ]
    first, second = (figure.mean for figure in figures if figure)
    # 170 and 120 s before and beside the work, of which 110 and 60 s are billed at $36
    fixed = (170.0, 120.0) if goal is FASTEST else (1.1, 0.6)
    slopes = (first - fixed[0]) / 100_000, (second - fixed[1]) / 100_000
    assert crossover.examples == pytest.approx(
        (fixed[0] - fixed[1]) / (slopes[1] - slopes[0]), rel=1e-3
    )
    # checkpoints of 30 s each minute take half as long again; a crossover of the trial's rate would
    # not know of them
    assert crossover.examples == pytest.approx(4000 / 1.5, rel=0.01)


def _with_schedule(result: RunResult) -> RunResult:
    event = OneTimeEvent(name="checkpoint", step=30, seconds=30.0)
    return replace(
        remeasured(result, one_time=(event,)), full_run=FullRun(checkpoint_every_minutes=1.0)
    )


def _billed_less(result: RunResult, seconds: float) -> RunResult:
    (attempt,) = result.attempts
    phases = {**attempt.phase_seconds, "training": attempt.phase_seconds["training"] - seconds}
    billed = (attempt.billable_seconds or 0.0) - seconds
    attempt = replace(attempt, billable_seconds=billed, phase_seconds=phases)
    return replace(result, attempts=(attempt,), billable_seconds=billed)


def test_a_faster_cell_learning_differently_is_refused() -> None:
    suite = suite_of(FASTEST)
    cells = suite.cells
    noise = random.Random(5)

    def losses(level: float) -> Callable[[int], float]:
        return lambda step: level + noise.gauss(0, 0.001)

    results = trials(suite, cells[0], [1.0, 1.0], loss=losses(3.0))
    results += trials(suite, cells[1], [0.5, 0.5], loss=losses(3.5))
    verdict = judge(suite, cells, results)
    assert verdict.recommended == cells[0].cell_id
    assert "did not do the same work" in verdict.refused[cells[1].cell_id]


def test_spending_is_the_sum_of_all_runs() -> None:
    suite = suite_of()
    cells = suite.cells
    # 100 + 10 + 60 = 170 s at $36/h is $1.70; a failed run billed 50 s is $0.50
    results = [*trials(suite, cells[0], [1.0, 1.0]), failed_result(cells[1], 1, Outcome.TIMED_OUT)]
    assert judge(suite, cells, results).spent_usd == Decimal("3.9")
