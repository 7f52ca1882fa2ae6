"""Goals that name a quality: the time and the money until an evaluation reaches it."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from math import exp

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import (
    PRICE,
    completed_result,
    known,
    make_attempt,
    make_cell,
    make_suite,
    remeasured,
    result_from,
    step_log_of,
)
from tests.unit.step_log_samples import START
from traindyno.core.costs.projection import project_run
from traindyno.core.costs.to_target import (
    LearningPoint,
    Reached,
    evaluation_curve,
    reach_target,
    training_curve,
)
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.core.step_log.line import TARGET_REACHED, evaluation_line, phase_line
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import GoalKind, Quality, Strategy
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Measurement, Suite
from traindyno.core.verdict.cell_row import CellQuality
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import Finding, Verdict, parse_verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.table import FigureColumn

FASTEST = Goal(kind=GoalKind.FASTEST_TO, accuracy=0.9)
CHEAPEST = Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.9)
# Every 20 steps: 70 % at once, 85 % then, 92 % last.
RISING = (0.70, 0.85, 0.92)


def suite_of(goal: Goal, *, instances: tuple[str, ...] = ()) -> Suite:
    return make_suite(
        goal=goal,
        matrix={"instance": instances}
        if instances
        else {"strategy": (Strategy.DDP, Strategy.FSDP)},
        training={} if instances else {"instance": "ml.p4d.24xlarge"},
        measurement=Measurement(evaluate_every_steps=20),
    )


def evaluated(
    cell: Cell,
    trial: int,
    suite: Suite,
    *,
    step_seconds: float = 1.0,
    accuracies: Sequence[float] = RISING,
) -> RunResult:
    """Evaluations after 20, 40 and 60 steady steps, of which the first step took 10 s."""
    lines = [
        evaluation_line(
            START + 10 + 20 * (index + 1) * step_seconds,
            20 * (index + 1),
            {"accuracy": accuracy, "loss": 1 - accuracy},
        )
        for index, accuracy in enumerate(accuracies)
    ]
    return completed_result(cell, trial, step_seconds=step_seconds, suite=suite, after=lines)


def judged(suite: Suite, *cells: tuple[float, Sequence[float]], trials: int = 3) -> Verdict:
    """The verdict of cells with these step times and accuracies."""
    results = [
        evaluated(
            cell, trial, suite, step_seconds=seconds * (1 + trial / 1000), accuracies=accuracies
        )
        for cell, (seconds, accuracies) in zip(suite.cells, cells, strict=True)
        for trial in range(1, trials + 1)
    ]
    return judge(suite, suite.cells, results)


def test_time_and_money_to_the_target_by_hand() -> None:
    suite = suite_of(FASTEST)
    result = evaluated(suite.cells[0], 1, suite)
    reached = reach_target(result, QualityTarget(quality=Quality.ACCURACY, value=0.85))
    # 80 s until training starts, of which 20 s of downloading are billed; 50 s of training: (20 +
    # 50) s at $36/h, billed 170 s of a training time of 60 + 70 + 20 + 20 s = 170 s
    assert reached == Reached(step=40, seconds=130.0, usd=Decimal("0.7"), since_seconds=20.0)
    loss = known(reach_target(result, QualityTarget(quality=Quality.LOSS, value=0.31)))
    assert loss.step == 20
    assert reach_target(result, QualityTarget(quality=Quality.ACCURACY, value=0.93)) is None
    assert reach_target(result, QualityTarget(quality=Quality.PERPLEXITY, value=30)) is None


def test_on_spot_only_the_billed_share_is_paid() -> None:
    suite = suite_of(FASTEST)
    result = evaluated(suite.cells[0], 1, suite)
    (attempt,) = result.attempts
    spot = replace(
        result, attempts=(replace(attempt, billable_seconds=85.0, training_seconds=170.0),)
    )
    reached = known(reach_target(spot, QualityTarget(quality=Quality.ACCURACY, value=0.85)))
    assert (reached.seconds, reached.usd) == (130.0, Decimal("0.35"))


def test_the_fastest_to_a_quality_may_not_be_the_fastest_per_step(snapshot: Snapshot) -> None:
    """FSDP is faster, but learns more slowly: ddp reaches 90 % at its second evaluation."""
    suite = suite_of(FASTEST)
    verdict = judged(suite, (1.0, (0.80, 0.91, 0.93)), (0.8, (0.5, 0.8, 0.905)))
    ddp, _ = suite.cells
    # 6 % apart, with evaluations 15 % apart
    assert (verdict.metric, verdict.finding) == (FigureColumn.SECONDS_TO_TARGET, Finding.UNDECIDED)
    assert verdict.recommended == ddp.cell_id
    best, rival = (row.part(CellQuality) for row in verdict.rows)
    # 80 + 10 + 40 x 1.002 and 80 + 10 + 60 x 0.8016
    assert best.seconds is not None
    assert best.seconds.mean == pytest.approx(130.08, rel=1e-4)
    assert known(rival.seconds).mean == pytest.approx(138.1, rel=1e-4)
    text = describe_verdict(verdict)
    snapshot(text.headline)
    # 130 s x exp(2.24 x 20 / 130 / 2 / sqrt(number of trials)) at the upper end, with 1.25 % for
    # each cell
    reach = 2.241 * 20 / 130 / 2 / best.seconds.count**0.5
    assert known(best.seconds.interval).high == pytest.approx(130.08 * exp(reach), rel=2e-3)


def test_a_cell_never_at_the_target_is_said_so_and_not_ranked() -> None:
    suite = suite_of(CHEAPEST)
    verdict = judged(suite, (1.0, RISING), (0.1, (0.5, 0.8, 0.83)))
    ddp, fsdp = suite.cells
    assert (verdict.finding, verdict.recommended, verdict.rivals) == (
        Finding.ONLY_ONE,
        ddp.cell_id,
        (),
    )
    assert verdict.refused == {fsdp.cell_id: "it never reached accuracy 90 %: its best is 83 %"}
    assert verdict.row(fsdp.cell_id).part(CellQuality).usd is None


def test_a_cell_with_some_trials_at_the_target_is_not_ranked() -> None:
    suite = suite_of(CHEAPEST)
    ddp, fsdp = suite.cells
    results = [evaluated(ddp, trial, suite) for trial in (1, 2)]
    results += [evaluated(fsdp, 1, suite), evaluated(fsdp, 2, suite, accuracies=(0.5, 0.6, 0.7))]
    verdict = judge(suite, (ddp, fsdp), results)
    assert verdict.refused == {fsdp.cell_id: "only 1 of its 2 trials reached accuracy 90 %"}


def test_without_a_cell_at_the_target_none_is_recommended(snapshot: Snapshot) -> None:
    verdict = judged(suite_of(CHEAPEST), (1.0, (0.1, 0.2)), (1.0, ()))
    assert verdict.finding is Finding.NONE_WITHIN_LIMIT
    snapshot(describe_verdict(verdict).headline)
    assert "no evaluation of it measured accuracy" in verdict.refused.values()


def test_cells_learning_differently_are_compared_by_their_quality() -> None:
    """Loss parity refuses a cell for a whole workload; to a quality, its losses are its own
    affair.
    """
    suite = suite_of(FASTEST)
    ddp, fsdp = suite.cells
    results = [evaluated(ddp, trial, suite) for trial in (1, 2, 3)]
    for trial in (1, 2, 3):
        result = evaluated(fsdp, trial, suite, step_seconds=0.5)
        curve = known(result.measured).loss
        worse = tuple(replace(point, loss=point.loss * 1.5) for point in curve.points)
        results.append(remeasured(result, points=worse))
    verdict = judge(suite, (ddp, fsdp), results)
    assert [parity.finding for parity in verdict.likeness.parities] == [ParityFinding.DIFFERS]
    assert verdict.recommended == fsdp.cell_id


def test_money_to_quality_follows_the_price() -> None:
    types = ("ml.p4d.24xlarge", "ml.g5.12xlarge")
    suite = suite_of(CHEAPEST, instances=types)
    p4d, g5 = suite.cells
    results = [evaluated(p4d, trial, suite) for trial in (1, 2)]
    slow = [evaluated(g5, trial, suite, step_seconds=2.0) for trial in (1, 2)]
    cheap = replace(PRICE, usd_per_instance_hour=Decimal(9))
    verdict = judge(
        suite, (p4d, g5), [*results, *(replace(result, price=cheap) for result in slow)]
    )
    # p4d bills 20 + 10 + 60 s at $36/h, g5 20 + 10 + 120 s at $9/h
    assert (verdict.metric, verdict.recommended) == (FigureColumn.USD_TO_TARGET, g5.cell_id)


def test_the_record_of_the_verdict_keeps_accuracy_and_quality() -> None:
    verdict = judged(suite_of(FASTEST), (1.0, RISING), (1.1, RISING))
    assert parse_verdict(verdict_document(verdict)) == verdict
    quality = verdict_document(verdict)["rows"][0]["parts"][0]
    assert (quality["kind"], quality["reached"]) == ("quality", 3)
    assert (quality["accuracy"]["mean"], quality["loss"]["mean"]) == (
        pytest.approx(0.92),
        pytest.approx(0.08),
    )


def stopped(
    cell: Cell, trial: int, suite: Suite, *, steps: int, accuracy: float = 0.91
) -> RunResult:
    """A run that ended after ``steps`` steps, because the evaluation after the last one reached the
    target.
    """
    seconds = [1.0 + trial / 1000] * steps
    lines = [
        phase_line("evaluate", START + sum(seconds), START + sum(seconds) + 2),
        evaluation_line(START + sum(seconds) + 2, steps, {"accuracy": accuracy}),
    ]
    log = step_log_of(seconds, samples=8, after=lines, end_reason=TARGET_REACHED)
    result = completed_result(cell, trial, suite=suite)
    return result_from(
        log, run=result.run, suite=suite, attempts=result.attempts, price=result.price
    )


@pytest.mark.parametrize("steps", [1, 4])
def test_a_run_ended_at_its_target_is_not_called_unsteady_however_short(
    snapshot: Snapshot,
    steps: int,
) -> None:
    suite = suite_of(FASTEST)
    ddp, fsdp = suite.cells
    results = [stopped(ddp, trial, suite, steps=steps) for trial in range(1, 4)]
    slower = [evaluated(fsdp, trial, suite, step_seconds=1 + trial / 1000) for trial in range(1, 4)]
    verdict = judge(suite, [ddp, fsdp], [*results, *slower])
    row = verdict.row(ddp.cell_id)
    assert (row.trials, row.steadiness.unsteady_trials, row.steadiness.unsteady_reasons) == (
        3,
        0,
        (),
    )
    quality = row.part(CellQuality)
    assert quality.reached == 3
    # 80 s until training starts, the steps, 2 s of evaluation
    assert known(quality.seconds).mean == pytest.approx(80 + steps * 1.002 + 2, rel=1e-4)
    assert (verdict.finding, verdict.recommended) == (Finding.RECOMMENDED, ddp.cell_id)
    text = describe_verdict(verdict)
    snapshot(text.headline)
    assert not [caution for caution in text.cautions if "steady" in caution]


def test_a_short_run_not_ended_at_its_target_is_called_unsteady() -> None:
    suite = suite_of(FASTEST)
    ddp = suite.cells[0]
    cut = remeasured(
        completed_result(ddp, 1, suite=suite), is_reached=False, reason="too few steps"
    )
    row = judge(suite, [ddp], [cut]).row(ddp.cell_id)
    assert (row.steadiness.unsteady_trials, row.steadiness.unsteady_reasons) == (
        1,
        ("too few steps",),
    )


@pytest.mark.parametrize(("steps", "reason"), [(60, None), (40, TARGET_REACHED)])
def test_a_run_ended_at_its_target_has_the_rate_of_a_longer_one(
    steps: int, reason: str | None
) -> None:
    """Each step takes 1 s, and 2 s of evaluation follow after every 20 steps, also after the last
    one.
    """
    suite = suite_of(FASTEST)
    seconds = [3.0 if index in (20, 40) else 1.0 for index in range(steps)]
    begins = [START + sum(seconds[:index]) for index in range(20, steps + 1, 20)]
    result = result_from(
        step_log_of(
            seconds,
            samples=8,
            after=[phase_line("evaluate", at, at + 2) for at in begins],
            end_reason=reason,
        ),
        run=completed_result(suite.cells[0], 1).run,
        suite=suite,
        attempts=[make_attempt(phase_seconds={"starting": 60.0, "training": sum(seconds) + 2})],
    )
    assert result.measured is not None
    assert (result.measured.steady_state.is_reached, result.measured.ended_at_target) == (
        True,
        reason is not None,
    )
    # 8 samples in 1 s + 2 s ÷ 20
    assert result.samples_per_second == pytest.approx(8 / 1.1)
    projection = known(project_run(result))
    # 62 s are paid once: until training, and after the last step; 1 s of warm-up; 99,992 samples
    # are left
    assert projection.seconds == pytest.approx(63 + 99_992 * 1.1 / 8)


def test_the_loss_of_an_interruption_is_not_in_the_time_to_a_target() -> None:
    """400 s between two sessions, and 10 s of the first one that the second one repeated; 29 s of
    it are kept.
    """
    suite = suite_of(FASTEST)
    cell = suite.cells[0]
    plain = evaluated(cell, 1, suite)
    target = known(suite.goal.target)
    later = tuple(
        replace(evaluation, time=evaluation.time + 410)
        for evaluation in known(plain.measured).evaluations
    )
    before = remeasured(plain, interruptions=1, lost_seconds=410.0, kept_seconds=29.0)
    assert reach_target(remeasured(before, evaluations=later), target) == reach_target(
        plain, target
    )
    assert reach_target(before, target) == reach_target(plain, target)


def test_distant_evaluations_can_not_show_a_small_lead() -> None:
    suite = suite_of(FASTEST)
    fast, slow = suite.cells

    def judged(lead: float) -> Verdict:
        results = [
            replace(evaluated(cell, trial, suite, step_seconds=pace), seed=trial)
            for cell, pace in ((fast, 1.0), (slow, 1 + lead))
            for trial in (1, 2, 3)
        ]
        return judge(suite, (fast, slow), results)

    # equal trials have no spread, but the evaluations are a fifth of the time or more apart
    near = judged(0.1)
    assert near.finding is Finding.UNDECIDED
    row_seconds = known(near.row(fast.cell_id).part(CellQuality).seconds)
    assert row_seconds.interval is not None
    assert row_seconds.interval.high / row_seconds.interval.low > 1.05
    assert judged(20.0).finding is Finding.RECOMMENDED


def test_losses_and_evaluations_know_their_time_and_money() -> None:
    after = [
        evaluation_line(START + 30, 20, {"accuracy": 0.7}),
        evaluation_line(START + 50, 40, {"loss": 2.0}),
    ]
    result = completed_result(make_cell(), 1, after=after)
    # 80 s before training, 20 s of them downloading and billed; $36/h are one cent a second
    (point,) = evaluation_curve(result, Quality.ACCURACY)
    assert point == LearningPoint(step=20, seconds=110.0, usd=0.5, value=0.7)
    second = training_curve(result)[1]
    assert (second.step, second.seconds) == (1, 91.0)
    assert second.usd == pytest.approx(0.31)
