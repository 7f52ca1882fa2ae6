"""Each sentence of a verdict's text, made of a verdict whose figures are given."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.verdict_samples import BEST, SECOND, THIRD, make_estimate, make_rival, make_row, make_verdict
from traindyno.core.costs.hazard import Hazard
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.statistics.estimates import Interval
from traindyno.core.statistics.selection import Relation
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_quality import CellQuality
from traindyno.core.verdict.goal_metric import BreakEven, Crossover, Metric
from traindyno.core.verdict.verdict import AgainstBaseline, Finding
from traindyno.core.verdict.verdict_text import (
    VerdictText,
    describe_goal,
    describe_verdict,
    metric_text,
    names_text,
    saving_interval_text,
    saving_text,
)

INTERVAL = Interval(low=0.7, high=0.9, confidence=0.95)

# How often a claim of this kind is wrong.
WRONG = " (wrong in at most 5 % of suites)"


def described(**changes: Any) -> VerdictText:
    return describe_verdict(make_verdict(**changes))


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "4 other cells"),
    ],
)
def test_up_to_three_cells_are_named(labels: list[str], text: str) -> None:
    assert names_text(labels) == text


@pytest.mark.parametrize(
    ("goal", "text"),
    [
        (Goal(kind=GoalKind.CHEAPEST), "cheapest"),
        (Goal(kind=GoalKind.FASTEST), "fastest"),
        (Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal(8)), "cheapest within 8 h"),
        (Goal(kind=GoalKind.FASTEST_WITHIN, usd=Decimal(500)), "fastest within $500.00"),
        (Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.9), "cheapest to accuracy 90 %"),
        (Goal(kind=GoalKind.FASTEST_TO, loss=2.5), "fastest to loss 2.5"),
    ],
)
def test_a_goal_is_named_with_its_limit(goal: Goal, text: str) -> None:
    assert describe_goal(goal) == text


def test_a_metric_has_its_unit() -> None:
    assert [metric_text(metric, 1000.0) for metric in Metric] == [
        {"seconds": "16 min 40 s", "usd": "$1,000.00", "instance_hours": "1,000 instance hours"}[
            metric.value.removesuffix("_to_target")
        ]
        for metric in Metric
    ]


def test_a_saving_is_what_is_missing_to_the_whole() -> None:
    assert saving_text(0.8, None) == "20.0 %"
    assert saving_text(0.8, INTERVAL) == "20.0 % (95% interval 10.0 to 30.0 %)"
    # a cell that may need more: the saving is negative there
    assert saving_interval_text(Interval(low=0.9, high=1.05, confidence=0.95)) == "−5.0 to 10.0 %"
    assert saving_interval_text(Interval(low=0.9999, high=1.0001, confidence=0.95)) == "0.0 to 0.0 %"


def test_a_ratio_that_may_exceed_two_is_a_factor() -> None:
    assert saving_interval_text(Interval(low=0.5, high=2.0, confidence=0.95)) == "−100.0 to 50.0 %"
    assert saving_interval_text(Interval(low=0.5, high=2.01, confidence=0.95)) == "0.500 to 2.01 times"


def test_a_clear_winner_is_supported_by_its_cost_its_time_and_its_margin() -> None:
    text = described()
    assert text.headline == "Use ddp: it is cheapest."
    assert text.support[:-1] == (
        "ddp would do the work of 100,000 examples for $10.00 (95% interval $9.00 to $11.00), in 16 min 40 s.",
        "That is 20.0 % (95% interval 10.0 to 30.0 %) less than the runner-up, fsdp (3 and 3 trials). "
        "The claim that a cell beats each other one is wrong in at most 5 % of suites.",
    )
    assert text.changes == ()


def test_the_goals_own_quantity_comes_first() -> None:
    fastest = Goal(kind=GoalKind.FASTEST)
    time = described(metric=Metric.SECONDS, goal=fastest).support[0]
    assert time.endswith("in 16 min 40 s (95% interval 15 min to 18 min 20 s), for $10.00.")
    unpriced = described(metric=Metric.SECONDS, goal=fastest, rows=(make_row(usd=None), make_row(SECOND)))
    assert unpriced.support[0].endswith("in 16 min 40 s (95% interval 15 min to 18 min 20 s).")
    untimed = described(rows=(make_row(seconds=None, usd=make_estimate(10.0)), make_row(SECOND)))
    assert untimed.support[0].endswith("for $10.00, in an unknown time.")


def test_to_a_target_counts_what_the_target_took() -> None:
    quality = replace(CellQuality(), seconds=make_estimate(300.0), usd=make_estimate(3.0))
    text = described(
        goal=Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.9),
        metric=Metric.USD_TO_TARGET,
        rows=(make_row(quality=quality), make_row(SECOND)),
    )
    assert text.support[0] == "ddp reaches accuracy 90 % for $3.00, in 5 min."


def test_a_margin_without_a_spread_has_no_interval() -> None:
    text = described(rivals=(make_rival(p=None, interval=None),))
    assert text.support[1].startswith("That is 20.0 % less than the runner-up, fsdp (3 and 3 trials).")


def test_a_margin_that_may_be_noise_says_so() -> None:
    rows = (make_row(trials=4), make_row(SECOND, trials=5))
    text = described(rows=rows, finding=Finding.UNDECIDED, rivals=(make_rival(relation=Relation.OPEN),))
    assert text.support[1] == (
        "It was 20.0 % (95% interval 10.0 to 30.0 %) below fsdp (4 and 5 trials). This difference may be noise."
    )


def test_at_a_look_of_a_race_a_difference_is_judged_by_its_share() -> None:
    text = described(finding=Finding.UNDECIDED, rivals=(make_rival(relation=Relation.OPEN),), significance=0.01)
    assert text.support[1].endswith(
        "; at this look of the race, a difference counts only if chance explains it in less than 1.00 % of suites."
    )


def test_an_undecided_verdict_names_the_cells_and_the_trials_that_would_tell() -> None:
    rivals = (make_rival(relation=Relation.OPEN), make_rival(THIRD, Relation.BEATEN))
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    changes: dict[str, Any] = {"finding": Finding.UNDECIDED, "rivals": rivals, "rows": rows}
    text = described(**changes, trials_to_decide=12)
    assert text.headline == "ddp and fsdp can't be told apart yet: 12 trials of each would decide."
    assert text.changes[0] == (
        "A suite of these cells with 12 trials of each (3 were run) settles it with a probability of 80 %."
    )
    many = described(**changes)
    assert many.headline == "ddp and fsdp can't be told apart yet: more than 200 trials of each would decide."
    assert many.changes == ()


@pytest.mark.parametrize(("rivals", "choice"), [(2, "ddp, c0 and c1"), (3, "ddp and 3 other cells")])
def test_many_open_cells_are_counted(rivals: int, choice: str) -> None:
    names = [f"c{index}" for index in range(rivals)]
    text = described(
        finding=Finding.UNDECIDED,
        rows=(make_row(), *(make_row(name) for name in names)),
        rivals=tuple(make_rival(name, Relation.OPEN) for name in names),
    )
    assert text.headline.startswith(f"{choice} can't be told apart yet: ")


def test_what_more_trials_would_not_decide_is_said_with_its_reason() -> None:
    rows = (make_row(), make_row(SECOND, undecided_reasons=("no trial shows whether its stalls recur",)))
    text = described(
        finding=Finding.UNDECIDED,
        rows=rows,
        rivals=(make_rival(relation=Relation.OPEN),),
        needs_longer_trials=True,
    )
    assert text.headline == ("ddp and fsdp can't be told apart yet: of fsdp, no trial shows whether its stalls recur.")
    assert text.changes == (
        "Longer trials (measurement.max_steps) decide sooner than more of them: they show whether stalls recur,"
        " and where a drift leads.",
    )


def test_a_reason_that_several_cells_share_is_said_once() -> None:
    reasons = ("no trial shows whether its stalls recur", "it drifts")
    rows = (make_row(undecided_reasons=reasons[:1]), make_row(SECOND, undecided_reasons=reasons), make_row(THIRD))
    text = described(
        finding=Finding.UNDECIDED,
        rows=rows,
        rivals=(make_rival(relation=Relation.OPEN),),
        needs_longer_trials=True,
    )
    assert text.headline.endswith(": of ddp and of fsdp, no trial shows whether its stalls recur; of fsdp, it drifts.")


HAZARD = Hazard(
    key=("ml.p4d.24xlarge", "spot"),
    per_instance_hour=0.5,
    low=0.01,
    high=3.1,
    hours=1.0,
    count=1,
    shape=1.0,
    source="an assumption",
)


@pytest.mark.parametrize("stalls", [False, True])
def test_an_unknown_rate_of_interruptions_is_named_with_advice_of_its_own(stalls: bool) -> None:
    reasons = ("no trial shows whether its stalls recur",) if stalls else ()
    rows = (make_row(undecided_reasons=reasons), make_row(SECOND, hazard=HAZARD, hazard_width=0.4), make_row(THIRD))
    rivals = (make_rival(relation=Relation.OPEN), make_rival(THIRD, Relation.OPEN))
    text = described(finding=Finding.UNDECIDED, rows=rows, rivals=rivals, needs_longer_trials=True)
    hazard = "of fsdp, 0.01 to 3.1 interruptions per instance-hour are possible."
    assert text.headline.endswith(hazard)
    assert ("recur; of fsdp" in text.headline) is stalls
    assert any("More hours of measurement" in each for each in text.changes)
    assert any("Longer trials" in each for each in text.changes) is stalls


def test_a_rate_of_interruptions_that_all_cells_share_is_no_reason() -> None:
    alike: dict[str, Any] = {"hazard": HAZARD, "hazard_width": 0.4}
    rows = (make_row(**alike, undecided_reasons=("it drifts",)), make_row(SECOND, **alike))
    text = described(
        finding=Finding.UNDECIDED, rows=rows, rivals=(make_rival(relation=Relation.OPEN),), needs_longer_trials=True
    )
    assert text.headline == "ddp and fsdp can't be told apart yet: of ddp, it drifts."
    assert not any("More hours" in each for each in text.changes)


def test_reasons_of_cells_that_are_beaten_are_left_out() -> None:
    rows = (make_row(), make_row(SECOND, undecided_reasons=("a",)), make_row(THIRD, undecided_reasons=("b",)))
    rivals = (make_rival(relation=Relation.OPEN), make_rival(THIRD, Relation.BEATEN))
    text = described(finding=Finding.UNDECIDED, rows=rows, rivals=rivals, needs_longer_trials=True)
    assert text.headline == "ddp and fsdp can't be told apart yet: of fsdp, a."


def test_the_upper_end_of_a_run_that_may_never_end_is_unknown() -> None:
    endless = replace(make_estimate(10.0), interval=Interval(low=9.0, high=11_053_662.0, confidence=0.95))
    text = described(rows=(make_row(usd=endless), make_row(SECOND)))
    assert "for $10.00 (95% interval $9.00 to unknown)" in text.support[0]
    assert saving_interval_text(Interval(low=1e-5, high=1.2, confidence=0.95)) == "unknown"


def test_equals_are_within_the_tolerance_and_others_are_not_better() -> None:
    equal, worse = make_rival(relation=Relation.EQUIVALENT), make_rival(THIRD, Relation.NOT_BETTER)
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    changes: dict[str, Any] = {"finding": Finding.WITHIN_TOLERANCE, "rows": rows}
    assert described(**changes, rivals=(equal,)).headline == f"Use ddp; fsdp is within 2 %{WRONG}."
    both_equal = (equal, make_rival(THIRD, Relation.EQUIVALENT))
    assert described(**changes, rivals=both_equal).headline == f"Use ddp; fsdp and zero1 are within 2 %{WRONG}."
    mixed = described(**changes, rivals=(equal, worse))
    assert mixed.headline == f"Use ddp: no other cell is cheaper by more than 2 %{WRONG}."
    assert mixed.support[2:-1] == (
        f"fsdp is within 2 %{WRONG}.",
        f"zero1 is not cheaper by more than 2 %{WRONG}, and may be worse.",
    )
    both_worse = (make_rival(relation=Relation.NOT_BETTER), worse)
    fastest = described(**changes, rivals=both_worse, metric=Metric.SECONDS)
    assert fastest.support[2] == f"fsdp and zero1 are not faster by more than 2 %{WRONG}, and may be worse."
    assert "within 2 %" not in " ".join(described(**changes, rivals=(equal,)).support)


@pytest.mark.parametrize(
    ("finding", "headline"),
    [
        (Finding.ONLY_ONE, "Use ddp: it is the only cell that qualifies."),
        (Finding.TOO_FEW_TRIALS, "ddp was cheapest, but cells with one trial can't be compared."),
    ],
)
def test_other_findings_have_headlines_of_their_own(finding: Finding, headline: str) -> None:
    assert described(finding=finding).headline == headline


def test_too_few_trials_ask_for_more() -> None:
    assert described(finding=Finding.TOO_FEW_TRIALS).changes == (
        "Two trials of each cell give an interval; five give a useful one.",
    )


def test_failures_and_unsteady_trials_of_the_cell_are_in_the_headline() -> None:
    best = make_row(failed=2, diverged=1, unsteady_trials=1)
    noted = "Use ddp: it is cheapest. Note: 2 of its 5 trials failed, 1 diverged"
    unsteady = "1 of its 3 measured trials did not reach a steady state"
    # an answer that is given holds for what these trials left open
    assert described(rows=(best, make_row(SECOND))).headline == f"{noted}."
    alone = described(rows=(best, make_row(SECOND)), finding=Finding.ONLY_ONE).headline
    assert alone.endswith("2 of its 5 trials failed, 1 diverged.")
    open_answer = described(rows=(best, make_row(SECOND)), finding=Finding.UNDECIDED)
    assert open_answer.headline.endswith(f"{unsteady}.")
    failed = described(rows=(make_row(failed=1), make_row(SECOND))).headline
    assert failed == "Use ddp: it is cheapest. Note: 1 of its 4 trials failed."


def no_cell(finding: Finding, *outcomes: dict[str, int]) -> str:
    rows = tuple(make_row(f"c{index}", outcomes=each) for index, each in enumerate(outcomes))
    return described(recommended=None, expected=None, rivals=(), rows=rows, finding=finding).headline


def test_without_a_cell_the_headline_says_how_the_runs_ended() -> None:
    measured = Finding.NONE_MEASURED
    assert no_cell(Finding.NONE_WITHIN_LIMIT, {"completed": 1}) == "No measured cell qualifies as cheapest."
    assert no_cell(measured, {}, {}) == "No cell was measured: no run has ended."
    assert no_cell(measured, {"completed": 1}, {"cost_stopped": 1}) == (
        "No cell was measured: the runs ended before a rate could be measured."
    )
    assert no_cell(measured, {"completed": 1, "timed_out": 1}, {"out_of_memory": 2}) == (
        "No cell was measured: the runs ended as out of memory, timed out."
    )
    assert described(recommended=None, expected=None, rivals=(), finding=measured).support == ()


def test_the_baseline_is_compared_with_what_is_detected() -> None:
    found = AgainstBaseline(cell_id=SECOND, ratio=0.8, interval=INTERVAL, is_detected=True)
    saving = "20.0 % (95% interval 10.0 to 30.0 %) less."
    assert described(against_baseline=found).support[2] == f"Against the baseline, fsdp, it needs {saving}"
    unsure = described(against_baseline=replace(found, is_detected=False)).support[2]
    assert unsure == f"Against the baseline, fsdp, no difference is detected: {saving}"


def test_accuracies_of_the_other_cells_are_a_range() -> None:
    rows = (
        make_row(accuracy=make_estimate(0.93)),
        make_row(SECOND, accuracy=make_estimate(0.95)),
        make_row(THIRD, accuracy=make_estimate(0.91)),
        make_row("d"),
    )
    assert described(rows=rows).support[2] == (
        "Its evaluation accuracy is 93.0 %; the other cells reach 91.0 % to 95.0 %."
    )
    assert described(rows=(rows[0], make_row(SECOND))).support[2] == "Its evaluation accuracy is 93.0 %."


def parity(cell_id: str, finding: ParityFinding) -> LossParity:
    return LossParity(
        reference_cell_id=BEST, cell_id=cell_id, finding=finding, ratio=1.0, interval=None, tolerance=0.03
    )


def test_losses_that_agree_are_counted_with_their_reference() -> None:
    agreeing = tuple(parity(cell_id, ParityFinding.AGREES) for cell_id in (SECOND, THIRD))
    sentence = "The losses of the 3 cells that should learn alike agree within 3.0 %."
    assert described(parities=agreeing).support[2] == sentence
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    mixed = (agreeing[0], parity(THIRD, ParityFinding.UNDECIDED))
    assert sentence not in described(parities=mixed, rows=rows).support


def break_even(cell_id: str) -> BreakEven:
    return BreakEven(
        cell_id=cell_id,
        instance="ml.trn1.32xlarge",
        usd_per_instance_hour=Decimal("22.763"),
        now_usd_per_instance_hour=Decimal("24.725"),
    )


def test_prices_and_sizes_that_would_change_the_answer_are_listed() -> None:
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    crossovers = tuple(
        Crossover(cell_id=cell_id, examples=examples)
        for cell_id, examples in ((SECOND, 500), (THIRD, 4_000), (SECOND, 900))
    )
    text = described(rows=rows, break_evens=(break_even(SECOND),), crossovers=crossovers)
    assert text.changes == (
        "fsdp would break even at $22.76/h for ml.trn1.32xlarge (now $24.73/h).",
        "For fewer than 4,000 examples, zero1 is cheaper.",
        "For fewer than 900 examples, fsdp is cheaper.",
    )
    assert len(described(rows=rows, break_evens=(break_even(SECOND),) * 9).changes) == 6
