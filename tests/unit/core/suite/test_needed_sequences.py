"""No more sequences are made than the longest run reads, and all of them where a part would not be
a fair sample.
"""

from typing import Any

import pytest

from tests.unit.suites import small_document, small_suite
from traindyno.core.run.tokens import MOST_HELD_OUT
from traindyno.core.suite.preparation import needed_sequences, needed_tokens
from traindyno.core.suite.suite import Suite

STEPS = 50
MATRIX = {
    "instance": ["ml.g5.xlarge", "ml.g5.12xlarge"],
    "batch_size_per_device": [4, 16],
    "packing": [True],
}


def suite_of(
    *, examples: int = 10**6, measurement: dict[str, Any] | None = None, **workload: Any
) -> Suite:
    changed = {**small_document()["workload"], "examples": examples, **workload}
    return small_suite(
        workload=changed,
        training={"strategy": "ddp"},
        baseline={},
        matrix=MATRIX,
        measurement={"max_steps": STEPS, "trials": 1, **(measurement or {})},
    )


def needed(suite: Suite) -> int | None:
    return needed_sequences(suite, suite.cells)


def test_the_cell_with_the_largest_step_decides() -> None:
    assert needed(suite_of()) == STEPS * 16 * 4  # four devices


def test_a_run_with_its_own_number_of_steps_reads_at_least_a_hundred() -> None:
    assert needed(suite_of(measurement={"least_seconds": 2.0})) == 100 * 16 * 4
    assert needed(suite_of(measurement={"least_seconds": 2.0, "max_steps": 300})) == 300 * 16 * 4


@pytest.mark.parametrize("examples", [1, STEPS * 16 * 4, STEPS * 16 * 4 + 1])
def test_never_more_than_the_examples(examples: int) -> None:
    assert min(needed(suite_of(examples=examples)) or examples, examples) == min(
        examples, STEPS * 16 * 4
    )


def test_held_out_rows_come_on_top_without_a_split_for_them() -> None:
    data = small_document()["workload"]["dataset"]
    evaluated = suite_of(measurement={"evaluate": True})
    apart = suite_of(measurement={"evaluate": True}, dataset={**data, "evaluation_split": "test"})
    assert needed(evaluated) == STEPS * 16 * 4 + MOST_HELD_OUT
    assert needed(apart) == STEPS * 16 * 4
    scheduled = suite_of(full_run={"evaluate_every_steps": 1000})
    assert needed(scheduled) == needed(evaluated)


def test_rows_possibly_sorted_by_their_label_are_all_read() -> None:
    assert needed(suite_of(task="sequence-classification", label_count=2)) is None


def test_each_way_of_packing_has_its_own_number() -> None:
    matrix = {"packing": [True, False], "batch_size_per_device": [4, 16]}
    exclude = [{"packing": False, "batch_size_per_device": 16}]
    workload = {**small_document()["workload"], "examples": 10**6}
    suite = small_suite(
        workload=workload,
        matrix=matrix,
        baseline={},
        exclude=exclude,
        measurement={"max_steps": STEPS, "trials": 1},
    )
    sequences = {packed.packing: packed.sequences for packed in needed_tokens(suite)}
    assert sequences == {True: STEPS * 16, False: STEPS * 4}
