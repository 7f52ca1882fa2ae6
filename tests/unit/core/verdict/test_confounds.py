from dataclasses import replace
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import completed_results, known, make_suite
from tests.unit.suites import small_suite
from traindyno.core.run.processes import planned_batch_size
from traindyno.core.run.settings import Adapter, LearningRate
from traindyno.core.step_log.fields import ModelSize
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Compiler, LearningRateScaling, Precision, Strategy
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cautions import describe_cautions
from traindyno.core.verdict.conditions import Confound, Difference
from traindyno.core.verdict.confounds import THREADS, find_confound, learning_key, versions_of
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import parse_verdict, verdict_document

SCALED = LearningRate(
    base=5e-5, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH
)


def planned_suite(**changes: Any) -> Suite:
    """A suite that planning accepts."""
    return make_suite(workload=small_suite().workload, **changes)


def suite_of(matrix: dict[str, tuple[Any, ...]], **training: Any) -> Suite:
    return planned_suite(matrix=matrix, training={"instance": "ml.g4dn.12xlarge", **training})


def cell_with(suite: Suite, **wanted: Any) -> Cell:
    return next(
        cell
        for cell in suite.cells
        if all(getattr(cell.settings, name) == value for name, value in wanted.items())
    )


def confound_of(suite: Suite, first: Cell, second: Cell) -> Confound | None:
    return find_confound(first, second, workload=suite.workload)


def test_the_first_seed_changes_three_things_at_once() -> None:
    # 4 T4s: batch 10 against 20 a device, 40 against 80 in all; 5e-5 / 32 x 40 = 6.25e-5 against
    # 1.25e-4
    suite = planned_suite(
        matrix={"compiler": (Compiler.NONE,), "batch_size_per_device": (10,)},
        include=({"compiler": Compiler.INDUCTOR, "batch_size_per_device": 20},),
        training={"instance": "ml.g4dn.12xlarge", "learning_rate": SCALED},
    )
    native, compiled = suite.cells
    assert (planned_batch_size(native.settings), planned_batch_size(compiled.settings)) == (40, 80)
    confound = known(confound_of(suite, native, compiled))
    assert [
        (difference.name, difference.first, difference.second)
        for difference in confound.differences
    ] == [
        ("compiler", "none", "inductor"),
        ("batch_size_per_device", "10", "20"),
        ("global batch", "40", "80"),
        ("learning rate", "6.25e-05", "0.000125"),
    ]


def test_more_instances_grow_the_global_batch() -> None:
    suite = suite_of({"instance_count": (1, 2)}, batch_size_per_device=16)
    first, second = suite.cells
    confound = known(confound_of(suite, first, second))
    assert [difference.name for difference in confound.differences] == [
        "instance_count",
        "global batch",
    ]


def test_one_difference_is_no_confound() -> None:
    suite = suite_of({"strategy": (Strategy.DDP, Strategy.FSDP)})
    first, second = suite.cells
    assert confound_of(suite, first, second) is None
    suite = suite_of({"batch_size_per_device": (8, 16)})
    first, second = suite.cells
    assert confound_of(suite, first, second) is None


def test_precision_and_strategy_should_leave_the_losses_alone() -> None:
    suite = suite_of(
        {"precision": (Precision.FP32, Precision.BF16), "strategy": (Strategy.DDP, Strategy.FSDP)}
    )
    cells = suite.cells
    assert len({learning_key(cell, suite.workload, None) for cell in cells}) == 1


def test_another_batch_or_rate_learns_otherwise() -> None:
    suite = suite_of({"batch_size_per_device": (8, 16)})
    assert len({learning_key(cell, suite.workload, None) for cell in suite.cells}) == 2
    suite = suite_of({"learning_rate": (LearningRate(base=1e-4), LearningRate(base=2e-4))})
    assert len({learning_key(cell, suite.workload, None) for cell in suite.cells}) == 2


def strategies_on_this_machine() -> Suite:
    """16 samples a step in every cell."""
    pipeline = {"strategy": Strategy.PIPELINE, "pipeline_degree": 2, "micro_batches": 4}
    return planned_suite(
        matrix={"strategy": (Strategy.SINGLE,)},
        training={"instance": "local.cpu", "batch_size_per_device": 16},
        include=(
            {"strategy": Strategy.DDP, "instance_count": 2, "batch_size_per_device": 8},
            {**pipeline, "instance_count": 2, "batch_size_per_device": 16},
            {**pipeline, "instance_count": 4, "batch_size_per_device": 8},
        ),
    )


def test_options_of_one_strategy_and_an_equal_global_batch_are_no_differences() -> None:
    suite = strategies_on_this_machine()
    ddp = cell_with(suite, strategy=Strategy.DDP)
    pipeline = cell_with(suite, strategy=Strategy.PIPELINE, instance_count=2)
    assert confound_of(suite, ddp, pipeline) is None
    assert (
        confound_of(suite, pipeline, cell_with(suite, strategy=Strategy.PIPELINE, instance_count=4))
        is None
    )


def test_another_number_of_instances_beside_another_strategy_is_named() -> None:
    suite = strategies_on_this_machine()
    confound = known(
        confound_of(
            suite,
            cell_with(suite, strategy=Strategy.DDP),
            cell_with(suite, strategy=Strategy.PIPELINE, instance_count=4),
        )
    )
    assert [difference.name for difference in confound.differences] == [
        "instance_count",
        "strategy",
    ]


def test_another_version_beside_another_compiler_is_named() -> None:
    suite = suite_of(
        {"compiler": (Compiler.NONE, Compiler.XLA)}, instance="local.cpu", strategy=Strategy.SINGLE
    )
    first, second = suite.cells
    versions = {
        first.cell_id: {"torch": "2.13.0", "numpy": "2.4.6"},
        second.cell_id: {"torch": "2.9.0", "numpy": "2.4.6", "torch-xla": "2.9.0"},
    }
    confound = known(find_confound(first, second, workload=suite.workload, versions=versions))
    assert [
        (difference.name, difference.first, difference.second)
        for difference in confound.differences
    ] == [
        ("compiler", "none", "xla"),
        ("torch", "2.13.0", "2.9.0"),
    ]


@pytest.mark.parametrize(
    ("instance", "facts", "threads"),
    [
        ("local.cpu", {"thread_settings": {"OMP_NUM_THREADS": "2", "torch": 1}}, {THREADS: "1"}),
        ("local.cpu", {"thread_settings": {"OMP_NUM_THREADS": "2"}}, {THREADS: "2"}),
        ("ml.g5.xlarge", {"thread_settings": {"torch": 1}}, {}),
        ("local.cpu", {"thread_settings": {}}, {}),
        ("local.cpu", {}, {}),
    ],
)
def test_a_cell_computing_on_processors_has_the_reported_threads_of_its_run(
    instance: str, facts: dict[str, Any], threads: dict[str, str]
) -> None:
    (cell,) = suite_of({}, instance=instance, strategy=Strategy.SINGLE).cells
    assert versions_of(cell, facts) == threads


def test_the_verdict_names_other_threads_beside_another_batch() -> None:
    suite = suite_of(
        {"batch_size_per_device": (4, 8)}, instance="local.cpu", strategy=Strategy.SINGLE
    )
    cells = suite.cells
    results = [
        replace(
            result,
            environment=replace(
                known(result.environment), facts={"thread_settings": {"torch": threads}}
            ),
        )
        for cell, seconds, threads in zip(cells, (1.0, 3.0), (2, 1), strict=True)
        for result in completed_results([cell], [seconds, 1.001 * seconds], suite=suite)
    ]
    (confound,) = judge(suite, cells, results).likeness.confounds
    assert (THREADS, "1", "2") in [
        (difference.name, difference.first, difference.second)
        for difference in confound.differences
    ]


def test_full_training_and_an_adapter_are_named_with_the_learning_rate_of_each(
    snapshot: Snapshot,
) -> None:
    adapter = Adapter(rank=16, learning_rate=2e-4)
    suite = suite_of({"adapter": (None, adapter)}, learning_rate=LearningRate(base=2e-5))
    cells = suite.cells
    sizes = ModelSize(7_000, None, None), ModelSize(7_200, None, None, 200)
    results = [
        replace(result, measured=replace(known(result.measured), model=size))
        for cell, seconds, size in zip(cells, (1.0, 3.0), sizes, strict=True)
        for result in completed_results([cell], [seconds, 1.001 * seconds], suite=suite)
    ]
    verdict = judge(suite, cells, results)
    (confound,) = verdict.likeness.confounds
    by_name = {
        difference.name: {difference.first, difference.second}
        for difference in confound.differences
    }
    assert by_name == {
        "adapter": {"none", "LoRA of rank 16, learning rate 0.0002"},
        "learning rate": {"2e-05", "0.0002"},
    }
    (told,) = [text for text in describe_cautions(verdict) if "same weights" in text]
    assert "all weights at learning rate 2e-05" in told
    snapshot(told)


def test_a_verdict_with_control_cells_of_an_earlier_version_is_read() -> None:
    suite = suite_of(
        {"batch_size_per_device": (4, 8)}, instance="local.cpu", strategy=Strategy.SINGLE
    )
    verdict = judge(suite, suite.cells, completed_results(suite.cells, [1.0, 1.1], suite=suite))
    difference = Difference(name="image", first="a", second="b")
    confound = Confound(first_cell_id="a", second_cell_id="b", differences=(difference,))
    named = replace(verdict, likeness=replace(verdict.likeness, confounds=(confound,)))
    document = verdict_document(named)
    control = {"cell_id": None, "include": {"strategy": "ddp"}, "isolates": "strategy"}
    document["likeness"]["confounds"][0]["controls"] = [control]
    assert parse_verdict(document) == named
