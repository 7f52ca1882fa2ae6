"""Each sentence of a verdict's text, made of a verdict whose figures are given."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.core.verdict.test_cautions import parity
from tests.unit.verdict_samples import (
    SECOND,
    THIRD,
    make_estimate,
    make_rival,
    make_row,
    make_verdict,
)
from traindyno.core.costs.hazard import Hazard
from traindyno.core.costs.prediction import Prediction
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_row import CellQuality, Steadiness
from traindyno.core.verdict.conditions import BreakEven, Crossover
from traindyno.core.verdict.verdict import AgainstBaseline, Finding
from traindyno.core.verdict.verdict_text import (
    VerdictText,
    describe_goal,
    describe_verdict,
    saving_text,
)
from traindyno.figures.estimates import Interval
from traindyno.figures.selection import Relation, ToDecide
from traindyno.figures.table import FigureColumn

INTERVAL = Interval(low=0.7, high=0.9, confidence=0.95)
STALLS = "no trial shows whether its stalls recur"
DRIFT = "it drifts"
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


def predicted(low: float, high: float) -> Prediction:
    seconds = Interval(low=low, high=high, confidence=0.9)
    usd = Interval(low=low / 100, high=high / 100, confidence=0.9)
    return Prediction(
        seconds=seconds, usd=usd, confidence=0.9, trials=3, interruptions_per_hour=0.0
    )


def described(**changes: Any) -> VerdictText:
    return describe_verdict(make_verdict(**changes))


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


def test_a_saving_is_the_difference_from_the_whole(snapshot: Snapshot) -> None:
    assert saving_text(0.8, None) == "20.0 %"
    snapshot(saving_text(0.8, INTERVAL))
    # a cell that may need more: the saving is negative there
    assert interval_said(0.9, 1.05) == "−5.0 to 10.0 %"
    assert interval_said(0.9999, 1.0001) == "0.0 to 0.0 %"
    # one unit for the difference and its ends; an interval that says nothing is left out
    assert interval_said(0.5, 2.5) == "−150.0 to 50.0 %"
    assert interval_said(1e-5, 1.2) == "20.0 %"
    # the level of the test that decided
    of_look = replace(INTERVAL, confidence=0.9975)
    snapshot(saving_text(0.8, of_look))


def interval_said(low: float, high: float) -> str:
    text = saving_text(0.8, Interval(low=low, high=high, confidence=0.95))
    return text.removeprefix("20.0 % (95% interval ").removesuffix(")")


def test_a_clear_winner_is_supported_by_its_margin(snapshot: Snapshot) -> None:
    text = described()
    snapshot(text.lead)
    snapshot(text.support)
    assert text.changes == ()


def test_a_margin_without_a_spread_has_no_interval(snapshot: Snapshot) -> None:
    text = described(rivals=(make_rival(p=None, interval=None),))
    snapshot(text.support)


def test_a_margin_possibly_of_noise_says_so(snapshot: Snapshot) -> None:
    rows = (make_row(trials=4), make_row(SECOND, trials=5))
    text = described(
        rows=rows, finding=Finding.UNDECIDED, rivals=(make_rival(relation=Relation.OPEN),)
    )
    snapshot(text.support[0])


def test_at_a_look_of_a_race_a_difference_is_judged_by_its_share(snapshot: Snapshot) -> None:
    text = described(
        finding=Finding.UNDECIDED, rivals=(make_rival(relation=Relation.OPEN),), significance=0.01
    )
    snapshot(text.support[0])


def test_an_undecided_verdict_names_the_cells_and_the_number_of_deciding_trials(
    snapshot: Snapshot,
) -> None:
    rivals = (make_rival(relation=Relation.OPEN), make_rival(THIRD, Relation.BEATEN))
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    changes: dict[str, Any] = {"finding": Finding.UNDECIDED, "rivals": rivals, "rows": rows}
    text = described(**changes, to_decide=ToDecide(trials=12))
    snapshot(text.headline)
    snapshot(text.changes[0])
    race = described(**changes, to_decide=ToDecide(trials=12), significance=0.01)
    snapshot(race.headline)
    many = described(**changes)
    snapshot(many.headline)
    assert many.changes == ()


@pytest.mark.parametrize(
    ("rivals", "choice"), [(2, "ddp, c0 and c1"), (3, "ddp and 3 other cells")]
)
def test_many_open_cells_are_counted(rivals: int, choice: str) -> None:
    names = [f"c{index}" for index in range(rivals)]
    text = described(
        finding=Finding.UNDECIDED,
        rows=(make_row(), *(make_row(name) for name in names)),
        rivals=tuple(make_rival(name, Relation.OPEN) for name in names),
    )
    assert text.headline.startswith(f"{choice} can't be told apart yet: ")


@pytest.mark.parametrize(
    ("reasons", "beaten"),
    [
        pytest.param(((), (STALLS,)), (), id="one cell"),
        pytest.param(((STALLS,), (STALLS, DRIFT)), (), id="one reason that several cells share"),
        pytest.param(((), (STALLS,)), (DRIFT,), id="beaten cells are left out"),
    ],
)
def test_a_question_beyond_more_trials_is_said_with_its_reason(
    snapshot: Snapshot, reasons: tuple[tuple[str, ...], tuple[str, ...]], beaten: tuple[str, ...]
) -> None:
    rows = (
        make_row(undecided_reasons=reasons[0]),
        make_row(SECOND, undecided_reasons=reasons[1]),
        make_row(THIRD, undecided_reasons=beaten),
    )
    rivals = (make_rival(relation=Relation.OPEN), make_rival(THIRD, Relation.BEATEN))
    text = described(
        finding=Finding.UNDECIDED, rows=rows, rivals=rivals, to_decide=ToDecide(longer_trials=True)
    )
    snapshot(text.headline)
    snapshot(text.changes)


@pytest.mark.parametrize("stalls", [False, True])
def test_an_unknown_rate_of_interruptions_is_named(stalls: bool) -> None:
    reasons = ("no trial shows whether its stalls recur",) if stalls else ()
    rows = (
        make_row(undecided_reasons=reasons),
        make_row(SECOND, hazard=HAZARD, hazard_width=0.4),
        make_row(THIRD),
    )
    rivals = (make_rival(relation=Relation.OPEN), make_rival(THIRD, Relation.OPEN))
    text = described(
        finding=Finding.UNDECIDED, rows=rows, rivals=rivals, to_decide=ToDecide(longer_trials=True)
    )
    hazard = "of fsdp, 0.01 to 3.1 interruptions per instance-hour are possible."
    assert text.headline.endswith(hazard)
    assert ("recur; of fsdp" in text.headline) is stalls
    assert any("Longer trials" in change for change in text.changes) is stalls


def test_a_rate_of_interruptions_shared_by_all_cells_is_no_reason(snapshot: Snapshot) -> None:
    alike: dict[str, Any] = {"hazard": HAZARD, "hazard_width": 0.4}
    rows = (make_row(**alike, undecided_reasons=("it drifts",)), make_row(SECOND, **alike))
    text = described(
        finding=Finding.UNDECIDED,
        rows=rows,
        rivals=(make_rival(relation=Relation.OPEN),),
        to_decide=ToDecide(longer_trials=True),
    )
    snapshot(text.headline)
    assert not any("More hours" in change for change in text.changes)


def test_equals_are_within_the_tolerance_and_others_are_not_better(snapshot: Snapshot) -> None:
    equal = make_rival(relation=Relation.EQUIVALENT)
    worse = make_rival(THIRD, Relation.NOT_BETTER)
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    changes: dict[str, Any] = {"finding": Finding.WITHIN_TOLERANCE, "rows": rows}
    snapshot(described(**changes, rivals=(equal,)).headline)
    both_equal = (equal, make_rival(THIRD, Relation.EQUIVALENT))
    snapshot(described(**changes, rivals=both_equal).headline)
    mixed = described(**changes, rivals=(equal, worse))
    snapshot(mixed.headline)
    fastest = described(**changes, rivals=(worse,), metric=FigureColumn.SECONDS)
    snapshot(fastest.headline)
    many = tuple(make_rival(f"c{index}", Relation.EQUIVALENT) for index in range(4))
    five = (make_row(), *(make_row(rival.cell_id) for rival in many))
    four = described(finding=Finding.WITHIN_TOLERANCE, rows=five, rivals=many)
    snapshot(four.headline)


@pytest.mark.parametrize(
    "finding",
    [
        Finding.RECOMMENDED,
        Finding.WITHIN_TOLERANCE,
        Finding.ONLY_ONE,
        Finding.UNDECIDED,
        Finding.TOO_FEW_TRIALS,
        Finding.ONE_SEED,
    ],
)
def test_each_finding_has_its_headline_and_says_how_certain_it_is(
    snapshot: Snapshot, finding: Finding
) -> None:
    text = described(finding=finding, rivals=(make_rival(relation=Relation.NOT_BETTER),))
    snapshot(text.headline, text.certainty)


def test_a_suite_of_one_cell_compares_it_with_none(snapshot: Snapshot) -> None:
    text = described(finding=Finding.ONLY_ONE, rows=(make_row(),), rivals=())
    snapshot(text.headline)


def test_too_few_trials_ask_for_more(snapshot: Snapshot) -> None:
    snapshot(described(finding=Finding.TOO_FEW_TRIALS).changes)


@pytest.mark.parametrize("finding", [Finding.RECOMMENDED, Finding.ONLY_ONE, Finding.UNDECIDED])
def test_failures_and_the_size_of_short_trials_are_in_the_headline(
    snapshot: Snapshot, finding: Finding
) -> None:
    best = make_row(
        failed=2,
        diverged=1,
        unsteady_trials=1,
        measured_seconds=30.0,
        steps_per_second=make_estimate(4.0),
    )
    # half of 900 to 1100 s is 10 % of 1,000 s; ten times 30 s at 4 steps a second
    noted = (
        " Note: 2 of its 5 trials failed, 1 diverged. The trials ran for 30.0 s each, the work "
        "takes 16 min 40 s: take it as ± 10 %; for longer trials: measurement.max_steps: 1000."
    )
    assert described(rows=(best, make_row(SECOND)), finding=finding).headline.endswith(noted)
    steady = described(
        rows=(replace(best, steadiness=Steadiness()), make_row(SECOND)), finding=finding
    )
    snapshot(steady.headline)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        # the prediction of one run, ± 200 s
        (
            {"prediction": predicted(800.0, 1200.0)},
            ": take it as ± 20 %; for longer trials: measurement.max_steps: 1000.",
        ),
        (
            {"seconds": make_estimate(1000.0)},
            "the work takes 16 min 40 s; for longer trials: measurement.max_steps: 1000.",
        ),
        # no more steps than the work has: 100,000 examples, 25 a step, or 62.5
        ({"measured_seconds": 500.0}, "measurement.max_steps: 4000."),
        (
            {"measured_seconds": 500.0, "samples_per_second": make_estimate(250.0)},
            "measurement.max_steps: 1600.",
        ),
        ({"measured_seconds": 1001.0}, "Use ddp: it is cheapest."),
        ({"measured_seconds": None}, "Use ddp: it is cheapest."),
    ],
)
def test_the_size_is_from_one_run_or_from_the_mean(changes: dict[str, Any], said: str) -> None:
    given = {
        "unsteady_trials": 1,
        "measured_seconds": 30.0,
        "steps_per_second": make_estimate(4.0),
        **changes,
    }
    assert described(rows=(make_row(**given), make_row(SECOND))).headline.endswith(said)


def test_a_script_decides_itself_how_many_steps_it_takes(snapshot: Snapshot) -> None:
    """measurement.max_steps has no effect there."""
    best = make_row(unsteady_trials=1, measured_seconds=30.0, steps_per_second=make_estimate(4.0))
    text = described(rows=(best, make_row(SECOND)), to_decide=ToDecide(is_script=True))
    snapshot(text.headline)
    row = make_row(undecided_reasons=("whether stalls recur is open",))
    to_decide = ToDecide(longer_trials=True, is_script=True)
    rivals = (make_rival(relation=Relation.OPEN),)
    rows = (row, make_row(SECOND))
    (change, *_) = described(
        finding=Finding.UNDECIDED, rows=rows, rivals=rivals, to_decide=to_decide
    ).changes
    snapshot(change)


def test_a_figure_uncertain_by_more_than_itself_is_a_range(snapshot: Snapshot) -> None:
    given: dict[str, Any] = {
        "unsteady_trials": 1,
        "measured_seconds": 30.0,
        "steps_per_second": make_estimate(4.0),
    }
    headline = described(
        rows=(make_row(**given, prediction=predicted(200.0, 4200.0)), make_row(SECOND))
    ).headline
    snapshot(headline)


def no_cell(finding: Finding, *outcomes: dict[str, int]) -> str:
    rows = tuple(
        make_row(f"c{index}", outcomes=outcomes_of_cell)
        for index, outcomes_of_cell in enumerate(outcomes)
    )
    return described(recommended=None, rivals=(), rows=rows, finding=finding).headline


def test_without_a_cell_the_headline_says_how_the_runs_ended(snapshot: Snapshot) -> None:
    measured = Finding.NONE_MEASURED
    assert (
        no_cell(Finding.NONE_WITHIN_LIMIT, {"completed": 1})
        == "No measured cell qualifies as cheapest."
    )
    snapshot(no_cell(measured, {}, {}))
    snapshot(no_cell(measured, {"completed": 1}, {"cost_stopped": 1}))
    snapshot(no_cell(measured, {"completed": 1, "timed_out": 1}, {"out_of_memory": 2}))
    nothing = described(recommended=None, rivals=(), finding=measured)
    assert nothing.support == ()
    snapshot(nothing.work)


def test_the_baseline_is_compared_with_detected_differences(snapshot: Snapshot) -> None:
    against_baseline = AgainstBaseline(
        cell_id=SECOND, ratio=0.8, interval=INTERVAL, is_detected=True
    )
    rows = (make_row(), make_row(SECOND), make_row("third"))
    nearer = make_rival(cell_id="third")
    saving = "20.0 % (95% interval 10.0 to 30.0 %) less."
    assert (
        described(
            rows=rows, rivals=(nearer, make_rival()), against_baseline=against_baseline
        ).support[1]
        == f"Against the baseline, fsdp, it needs {saving}"
    )
    unsure = described(
        rows=rows,
        rivals=(nearer, make_rival()),
        against_baseline=replace(against_baseline, is_detected=False),
    ).support[1]
    snapshot(unsure)
    # beside the runner-up's own interval, the same pair has no second one
    of_runner_up = described(against_baseline=against_baseline).support[1]
    snapshot(of_runner_up)


@pytest.mark.parametrize("relation", [Relation.EQUIVALENT, Relation.NOT_BETTER])
def test_a_deciding_pair_is_not_called_noise(snapshot: Snapshot, relation: Relation) -> None:
    text = described(finding=Finding.WITHIN_TOLERANCE, rivals=(make_rival(relation=relation),))
    snapshot(text.support[0])


def test_agreeing_losses_are_counted_with_their_reference() -> None:
    agreeing = tuple(
        parity(ParityFinding.AGREES, cell_id=cell_id, tolerance=0.03) for cell_id in (SECOND, THIRD)
    )
    sentence = "The losses of the 3 cells that should learn alike agree within 3.0 %."
    assert described(parities=agreeing).support[1] == sentence
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    mixed = (agreeing[0], parity(ParityFinding.UNDECIDED, cell_id=THIRD))
    assert sentence not in described(parities=mixed, rows=rows).support


def test_the_range_of_one_run_is_beside_the_figure(snapshot: Snapshot) -> None:
    row = make_row(prediction=predicted(900.0, 1200.0))
    snapshot(described(rows=(row, make_row(SECOND))).work)


def test_a_lead_possibly_of_noise_is_no_saving(snapshot: Snapshot) -> None:
    text = described(rivals=(make_rival(relation=Relation.OPEN, ratio=0.97),))
    snapshot(text.work)
    snapshot(described(metric=FigureColumn.SECONDS).work)
    assert "20.0 % less instance time than" in described(metric=FigureColumn.INSTANCE_HOURS).work
    for rivals in ((), (make_rival(ratio=1.0),), (make_rival(ratio=1.1),)):
        assert described(rivals=rivals).work.endswith("costs about $10.00.")


def test_unknown_figures_are_named_as_unknown(snapshot: Snapshot) -> None:
    text = described(rows=(make_row(seconds=None, usd=None), make_row(SECOND)))
    snapshot(text.work)


def test_training_to_a_target_takes_the_time_of_the_target(snapshot: Snapshot) -> None:
    quality = CellQuality(seconds=make_estimate(300.0), usd=make_estimate(3.0))
    text = described(
        goal=Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.9),
        metric=FigureColumn.USD_TO_TARGET,
        rows=(make_row(parts=(quality,)), make_row(SECOND)),
    )
    snapshot(text.work)


def test_a_count_of_runs_says_how_many_of_them_were_measured(snapshot: Snapshot) -> None:
    rows = (
        make_row(outcomes={"completed": 3, "timed_out": 1}),
        make_row(SECOND, trials=1),
        make_row(THIRD, trials=0, failed=2),
    )
    snapshot(described(rows=rows).certainty)
    snapshot(described(rows=rows, spent_usd=None).certainty)
    assert "4 of 7 simulated runs measured" in described(rows=rows, is_simulated=True).certainty


def break_even(cell_id: str) -> BreakEven:
    return BreakEven(
        cell_id=cell_id,
        instance="ml.trn1.32xlarge",
        usd_per_instance_hour=Decimal("22.763"),
        now_usd_per_instance_hour=Decimal("24.725"),
    )


def test_prices_and_sizes_turning_the_answer_are_listed(snapshot: Snapshot) -> None:
    rows = (make_row(), make_row(SECOND), make_row(THIRD))
    crossovers = tuple(
        Crossover(cell_id=cell_id, examples=examples)
        for cell_id, examples in ((SECOND, 500), (THIRD, 4_000), (SECOND, 900))
    )
    text = described(rows=rows, break_evens=(break_even(SECOND),), crossovers=crossovers)
    snapshot(text.changes)
    assert len(described(rows=rows, break_evens=(break_even(SECOND),) * 9).changes) == 6
