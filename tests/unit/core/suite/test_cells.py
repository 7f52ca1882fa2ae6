"""Cells, their identities and labels, and the order of runs."""

import json
from collections import Counter
from dataclasses import replace

from tests.sentences import Snapshot
from tests.unit.suites import script_document, small_document, small_suite
from traindyno.core.jobs.job import owner_document, parse_owner
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Compiler
from traindyno.core.suite.runs import block_of, make_runs, trial_runs
from traindyno.core.suite.suite_file import structure_suite, suite_document


def labels(**changes: object) -> list[str]:
    return [cell.label for cell in small_suite(**changes).cells]


def test_the_matrix_is_every_combination_in_the_order_of_its_axes() -> None:
    matrix = {"compiler": ["none", "inductor"], "batch_size_per_device": [8, 16]}
    assert labels(matrix=matrix) == [
        "eager · batch 8",
        "eager · batch 16",
        "compiled · batch 8",
        "compiled · batch 16",
    ]


def test_an_exclusion_takes_all_agreeing_cells_but_never_the_baseline() -> None:
    matrix = {"compiler": ["none", "inductor"], "batch_size_per_device": [8, 16]}
    assert labels(matrix=matrix, exclude=[{"batch_size_per_device": 8}]) == [
        "eager · batch 8",
        "eager · batch 16",
        "compiled · batch 16",
    ]


def test_without_a_baseline_the_first_cell_that_is_left_is_it() -> None:
    matrix = {"compiler": ["none", "inductor"], "batch_size_per_device": [8, 16]}
    excluded = {"baseline": {}, "exclude": [{"compiler": "none"}, {"batch_size_per_device": 8}]}
    suite = small_suite(matrix=matrix, include=[{"batch_size_per_device": 4}], **excluded)
    assert [cell.label for cell in suite.cells] == ["batch 16", "batch 4"]
    assert suite.baseline_cell == suite.cells[0]
    assert suite.cells[1].settings.compiler is Compiler.INDUCTOR


def test_an_inclusion_is_the_baseline_with_changes() -> None:
    suite = small_suite(baseline={"compiler": "inductor"}, include=[{"batch_size_per_device": 4}])
    added = suite.cells[-1]
    assert (added.settings.compiler, added.settings.batch_size_per_device) == (Compiler.INDUCTOR, 4)


def test_the_baseline_is_the_first_agreeing_cell() -> None:
    matrix = {"batch_size_per_device": [8, 16], "compiler": ["none", "inductor"]}
    suite = small_suite(matrix=matrix, baseline={"compiler": "inductor"})
    baseline = suite.baseline_cell
    assert baseline.label == "compiled · batch 8"
    assert baseline in suite.cells


def test_a_suite_holds_its_cells_and_its_document_does_not() -> None:
    suite = small_suite()
    assert suite.cells is suite.cells
    assert "cells" not in suite_document(suite)
    other = replace(suite, matrix={"seed": (1, 2)})
    assert [cell.settings.seed for cell in other.cells] == [1, 2]


def test_an_identity_follows_the_content_in_any_order() -> None:
    first = {"compiler": ["none", "inductor"], "seed": [1, 2]}
    second = {"seed": [2, 1], "compiler": ["inductor", "none"]}
    here = {cell.cell_id for cell in small_suite(matrix=first).cells}
    assert here == {cell.cell_id for cell in small_suite(matrix=second).cells}


def test_fixed_values_of_training_count_for_the_identity() -> None:
    one = small_suite().cells[0]
    other = small_suite(training={"instance": "ml.g5.xlarge", "precision": "fp32"}).cells[0]
    assert one.label == other.label
    assert one.cell_id != other.cell_id


def test_the_written_order_of_hyperparameters_is_no_difference() -> None:
    axes = {"hyperparameters.lr": [0.1], "hyperparameters.epochs": [1]}
    first = script_document(matrix={"instance": ["local.cpu"], **axes})
    second = script_document(matrix={**dict(reversed(axes.items())), "instance": ["local.cpu"]})
    (one,) = parse_suite(first).cells
    (other,) = parse_suite(second).cells
    assert one.cell_id == other.cell_id


def test_trials_are_interleaved_in_an_order_drawn_for_each_trial() -> None:
    suite = small_suite(
        training={"instance": "ml.g5.xlarge"},
        matrix={"instance_count": [1, 4, 2]},
        baseline={"instance_count": 1},
    )
    cells = suite.cells
    runs = trial_runs("execution-1", cells, [1, 2])
    assert [run.trial for run in runs] == [1, 1, 1, 2, 2, 2]
    assert [run.place for run in runs] == [1, 2, 3, 4, 5, 6]
    assert len({run.run_id for run in runs}) == 6
    assert trial_runs("execution-1", cells, [1, 2]) == runs
    first = Counter(
        trial_runs(f"execution-{index}", cells, [1])[0].cell.cell_id for index in range(600)
    )
    # each of three cells leads 200 of 600 rounds, give or take four deviations of sqrt(600 / 3 * 2
    # / 3) = 11.5
    assert all(154 <= first[cell.cell_id] <= 246 for cell in cells)
    rounds = (
        trial_runs(f"execution-{index}", cells, [trial]) for index in range(50) for trial in (1, 2)
    )
    assert len({tuple(run.cell.cell_id for run in runs) for runs in rounds}) == 6


def test_a_run_survives_its_document() -> None:
    document = script_document(
        matrix={"instance": ["local.cpu"], "hyperparameters.flag": [True, "x", 1, 0.5]}
    )
    for run in trial_runs("execution-1", parse_suite(document).cells, [1]):
        assert parse_owner(json.loads(json.dumps(owner_document(run)))) == run


def test_the_runs_of_a_round_are_in_blocks_and_a_repeat_is_in_its_own_rounds() -> None:
    cells = small_suite(matrix={"compiler": ["none", "inductor"]}).cells
    first = trial_runs("e", cells, [1, 2])
    assert [run.block for run in first] == ["1.1", "1.1", "1.2", "1.2"]
    repeats = make_runs("e", [(cells[0], 4), (cells[1], 5)], round_number=2)
    assert [(run.trial, run.block) for run in repeats] == [(4, "2.1"), (5, "2.1")]
    # of another execution, and without a block
    assert block_of(first[0]) != block_of(replace(first[0], execution_id="other"))
    assert block_of(replace(first[0], block=None)) == "e 1"


def test_an_axis_of_adapters_names_each_and_keeps_the_id_of_full_training(
    snapshot: Snapshot,
) -> None:
    plain = small_document()
    adapters = ["none", {"rank": 16}, {"rank": 64, "alpha": 16, "targets": "q_proj"}]
    suite = structure_suite({**plain, "matrix": {**plain["matrix"], "adapter": adapters}})
    cells = suite.cells
    labels = [cell.label for cell in cells]
    assert any("all weights" in label for label in labels)
    snapshot(labels)
    before = {cell.cell_id for cell in structure_suite(plain).cells}
    assert before <= {cell.cell_id for cell in cells}
    assert len(cells) == 3 * len(before)
    assert structure_suite(suite_document(suite)) == suite
