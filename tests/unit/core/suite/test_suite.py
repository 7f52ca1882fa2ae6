"""The parts of a suite that answer questions about it, the limits of its numbers, and what holds
without a value.
"""

from typing import Any

import pytest

from tests.unit.suites import problems, script_document, small_document
from traindyno.core.run.record import QualityTarget
from traindyno.core.suite.choices import GoalKind, Quality
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Measurement

LIMITS = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 1800}


def test_a_run_evaluates_at_its_end_or_every_so_many_steps() -> None:
    assert not Measurement().evaluates
    assert Measurement(evaluate=True).evaluates
    assert Measurement(evaluate_every_steps=20).evaluates


def test_accuracy_is_reached_from_below_and_losses_from_above() -> None:
    accuracy = QualityTarget(quality=Quality.ACCURACY, value=0.9)
    loss = QualityTarget(quality=Quality.LOSS, value=2.0)
    assert [accuracy.is_reached(value) for value in (0.89, 0.9, 0.91)] == [False, True, True]
    assert [loss.is_reached(value) for value in (1.9, 2.0, 2.1)] == [True, True, False]
    assert (accuracy.best([0.5, 0.7]), loss.best([2.5, 2.2])) == (0.7, 2.2)
    assert (str(accuracy), str(loss)) == ("accuracy 90 %", "loss 2")


def test_a_goal_is_of_time_or_money_with_a_target_or_without() -> None:
    times = {kind for kind in GoalKind if Goal(kind=kind).is_time}
    assert times == {GoalKind.FASTEST, GoalKind.FASTEST_WITHIN, GoalKind.FASTEST_TO}
    assert Goal(kind=GoalKind.CHEAPEST).target is None
    assert Goal(kind=GoalKind.CHEAPEST_TO, perplexity=12.0).target == QualityTarget(
        quality=Quality.PERPLEXITY, value=12.0
    )


@pytest.mark.parametrize(
    ("section", "field", "accepted", "refused"),
    [
        ("measurement", "trials", 1000, 1001),
        ("measurement", "trials", 1, 0),
        ("limits", "max_job_seconds", 2_419_200, 2_419_201),
        ("limits", "max_hours", 648, 649),
        ("limits", "max_usd", 1_000_000_000, 1_000_000_001),
        ("goal", "hours", 100_000, 100_001),
    ],
)
def test_numbers_are_accepted_up_to_their_bounds(
    section: str, field: str, accepted: float, refused: float
) -> None:
    def problems_of(value: float) -> list[str]:
        if section == "goal":
            return problems(small_document(goal={"cheapest-within": {field: value}}))
        plain = LIMITS if section == "limits" else {}
        return problems(small_document(**{section: {**plain, field: value}}))

    assert problems_of(accepted) == []
    (problem,) = problems_of(refused)
    assert problem.startswith(f"{section}.{field}: ")


@pytest.mark.parametrize(
    ("measurement", "goal"),
    [
        ({"warmup": 199}, "cheapest"),
        ({"warmup": 200, "least_seconds": 2.0}, "cheapest"),
        ({"warmup": 200, "evaluate_every_steps": 5}, {"fastest-to": {"loss": 1.0}}),
    ],
)
def test_a_warmup_leaves_a_step_that_counts_where_one_is_needed(
    measurement: dict[str, Any], goal: Any
) -> None:
    assert problems(small_document(measurement=measurement, goal=goal)) == []
    assert problems(script_document(measurement={"warmup": 200})) == []


def test_one_trial_of_the_only_cell_trains_for_any_goal() -> None:
    """`train` starts such a suite."""
    alone = {"matrix": {"compiler": ["none"]}, "measurement": {"trials": 1}}
    assert problems(small_document(goal={"cheapest-within": {"hours": 8}}, **alone)) == []


@pytest.mark.parametrize(
    ("name", "is_valid"), [("a" * 40, True), ("a" * 41, False), ("a--b", False), ("-a", False)]
)
def test_a_name_has_forty_characters_at_most(name: str, is_valid: bool) -> None:
    assert (problems(small_document(name=name)) == []) is is_valid
