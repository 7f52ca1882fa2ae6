"""Notes on a suite: loader workers that would use all vCPUs, the default learning rate of weights
that begin at random, an evaluation on the training data.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import known
from tests.unit.suites import unprepared_suite
from traindyno.api.suite_loading import load_suite
from traindyno.core.planning.cell_notes import evaluation_note, learning_note, loader_notes
from traindyno.core.planning.plan import plan_suite
from traindyno.core.run.settings import LearningRate
from traindyno.core.run.workload import Dataset, Model
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite

SUITES = Path(__file__).parents[4] / "suites"


def notes(**training: Any) -> list[str]:
    matrix = {
        "loader_workers": training.pop("workers", [0, 4]),
        "instance": training.pop("instances"),
    }
    return list(loader_notes(unprepared_suite(baseline={}, training=training, matrix=matrix).cells))


def test_the_posts_tip_is_computed_for_its_own_suite(snapshot: Snapshot) -> None:
    """96 vCPUs and 8 processes: 12, as the post says; its script takes the number as an
    argument.
    """
    cells = load_suite(SUITES / "albert-scaling" / "original.yaml").suite.cells
    snapshot(list(loader_notes(cells)))


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        (
            {"instances": ["ml.g5.12xlarge", "ml.g4dn.xlarge"]},
            ["12 loader workers in each of its 4", "4 loader"],
        ),
        # one process on an instance of many devices
        (
            {"instances": ["ml.g5.12xlarge"], "strategy": "single"},
            ["48 loader workers in its process"],
        ),
        ({"instances": ["ml.g5.xlarge", "ml.g5.2xlarge"], "workers": [4]}, []),
        ({"instances": ["local.cpu"]}, []),  # unknown vCPUs
    ],
)
def test_each_known_instance_type_has_its_own_number(
    training: dict[str, Any], expected: list[str]
) -> None:
    lines = notes(**{"strategy": "ddp", **training})
    assert len(lines) == len(expected)
    assert all(words in note for words, note in zip(expected, lines, strict=True))


def test_random_weights_with_the_default_learning_rate_may_miss_a_quality(
    snapshot: Snapshot,
) -> None:
    suite = replace(unprepared_suite(), goal=Goal(kind=GoalKind.FASTEST_TO, loss=2.5))
    note = known(learning_note(suite))
    snapshot(note)
    assert note in plan_suite(suite, execution_id="e", prices={}, quotas={}, histories={}).notes
    rate = LearningRate(base=5e-5)
    for decided in (
        replace(suite, goal=Goal(kind=GoalKind.FASTEST)),
        replace(suite, training={**suite.training, "learning_rate": rate}),
        replace(suite, matrix={**suite.matrix, "learning_rate": (rate,)}),
        replace(suite, workload=replace(suite.workload, model=Model(path="gpt2"))),
    ):
        assert learning_note(decided) is None


def test_an_evaluation_on_the_training_data_is_noted(snapshot: Snapshot) -> None:
    def evaluated_on(split: str | None) -> Suite:
        suite = unprepared_suite()
        dataset = Dataset(path="texts", split="train", evaluation_split=split)
        return replace(suite, workload=replace(suite.workload, dataset=dataset))

    note = known(evaluation_note(evaluated_on("train")))
    snapshot(note)
    suite = evaluated_on("train")
    assert note in plan_suite(suite, execution_id="e", prices={}, quotas={}, histories={}).notes
    assert evaluation_note(evaluated_on("test")) is evaluation_note(evaluated_on(None)) is None
