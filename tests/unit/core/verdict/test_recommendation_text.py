"""The three sentences: each figure that they name is the verdict's own."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.verdict_samples import BEST, SECOND, THIRD, make_estimate, make_rival, make_row, make_verdict
from traindyno.core.costs.prediction import Prediction
from traindyno.core.statistics.estimates import Interval
from traindyno.core.statistics.selection import Relation
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_quality import CellQuality
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.recommendation_text import recommendation_sentences
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict


def takes(verdict: Verdict) -> str:
    return recommendation_sentences(verdict)[1]


def how_sure(verdict: Verdict) -> str:
    return recommendation_sentences(verdict)[2]


def test_the_work_its_time_its_cost_and_what_is_saved() -> None:
    # a ratio of 0.8 of the cost
    assert takes(make_verdict()) == (
        "The whole work (100,000 examples) takes about 16 min 40 s and costs about $10.00, "
        "20.0 % less cost than the next best, fsdp."
    )
    assert ", 20.0 % less time than the next best, fsdp." in takes(make_verdict(metric=Metric.SECONDS))
    assert "20.0 % less instance time than" in takes(make_verdict(metric=Metric.INSTANCE_HOURS))


def test_the_range_of_one_run_is_beside_the_figure() -> None:
    seconds, usd = (Interval(low=low, high=high, confidence=0.9) for low, high in ((900, 1200), (9, 12)))
    row = make_row(
        prediction=Prediction(seconds=seconds, usd=usd, confidence=0.9, trials=3, interruptions_per_hour=0.0)
    )
    rows = (row, make_row(SECOND))
    assert takes(make_verdict(rows=rows)).startswith(
        "The whole work (100,000 examples) takes about 16 min 40 s (nine of ten runs: 15 to 20 min) and costs about"
        " $10.00 (nine of ten runs: $9.00 to $12.00), "
    )
    support = describe_verdict(make_verdict(rows=rows)).support
    assert "for $10.00 (one run, 90 %: $9.00 to $12.00; mean, 95% interval $9.00 to $11.00)" in support[0]
    assert support[-1].startswith(
        "The figure includes the start of a job, all time after the warm-up that the trials measured"
    )


def test_a_lead_that_may_be_noise_is_no_saving() -> None:
    verdict = make_verdict(rivals=(make_rival(relation=Relation.OPEN, ratio=0.97),))
    assert takes(verdict).endswith("; the next best, fsdp, was measured at 3.1 % more cost.")


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_a_rival_that_is_not_behind_is_not_named(ratio: float) -> None:
    assert takes(make_verdict(rivals=(make_rival(ratio=ratio),))).endswith("costs about $10.00.")
    assert takes(make_verdict(rivals=())).endswith("costs about $10.00.")


def test_unknown_figures_are_named_as_unknown() -> None:
    row = make_row(seconds=None, usd=None)
    text = takes(make_verdict(rows=(row, make_row(SECOND))))
    assert text.startswith("The whole work (100,000 examples) takes an unknown time and costs an unknown amount")
    nothing = make_verdict(expected=None, recommended=None, rivals=(), finding=Finding.NONE_MEASURED)
    assert takes(nothing) == "There is nothing to compare for this goal among the 2 cells."


def test_training_to_a_target_takes_what_the_target_took() -> None:
    quality = replace(CellQuality(), seconds=make_estimate(300.0), usd=make_estimate(3.0))
    verdict = make_verdict(
        goal=Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.9),
        metric=Metric.USD_TO_TARGET,
        rows=(make_row(quality=quality), make_row(SECOND)),
    )
    assert takes(verdict).startswith("Training to accuracy 90 % takes about 5 min and costs about $3.00, ")


def test_all_runs_count_and_only_measured_cells() -> None:
    rows = (make_row(outcomes={"completed": 3, "timed_out": 1}), make_row(SECOND, trials=1), make_row(THIRD, trials=0))
    basis = "10 runs measured 2 of 3 cells and cost $12.40"
    assert how_sure(make_verdict(rows=rows)).startswith(f"{basis}; ")
    assert "10 runs measured 2 of 3 cells;" in how_sure(make_verdict(rows=rows, spent_usd=None))
    assert "10 simulated runs measured" in how_sure(make_verdict(rows=rows, is_simulated=True))


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (
            Finding.RECOMMENDED,
            "{}; the claim that it is the best is wrong in at most 5 of 100 such suites.",
        ),
        (
            Finding.WITHIN_TOLERANCE,
            "{}; no other cell is better by more than 2 %, a claim that is wrong in at most 5 of 100 such suites.",
        ),
        (Finding.ONLY_ONE, "{}; no other cell qualifies for the goal."),
        (Finding.UNDECIDED, "{}; these are too few runs to tell the best cells apart."),
        (Finding.TOO_FEW_TRIALS, "{}; these are too few runs to tell the best cells apart."),
        (Finding.UNLIKE_WORK, "{}."),
        (Finding.NONE_WITHIN_LIMIT, "{}."),
        (Finding.NONE_MEASURED, "{}."),
    ],
)
def test_every_finding_says_how_far_it_can_be_relied_on(finding: Finding, text: str) -> None:
    rivals = (make_rival(relation=Relation.NOT_BETTER),)
    assert how_sure(make_verdict(finding=finding, rivals=rivals)) == text.format(
        "6 runs measured 2 of 2 cells and cost $12.40"
    )


def test_the_headline_is_the_verdicts() -> None:
    assert recommendation_sentences(make_verdict(spent_usd=Decimal(1)))[0] == "Use ddp: it is cheapest."
    assert make_verdict().row(BEST).label == "ddp"
