"""Memory before money: what fits, what would make it fit, and when a suite is refused."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.planned_suites import prices_of
from tests.unit.suites import unprepared_suite
from traindyno.core.planning.memory import (
    WITHOUT_EFFECT,
    MemoryEstimate,
    MemoryFinding,
    device_memory_bytes,
    distinct_settings,
    fitting_batch,
    memory_key,
    memory_of_cells,
    memory_settings,
    usable_memory_bytes,
)
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import LearningRateSchedule, Strategy
from traindyno.core.suite.settings import LearningRate, Settings
from traindyno.core.suite.suite import Suite

GB = 10**9


def estimate(peak: int) -> MemoryEstimate:
    return MemoryEstimate(
        peak_bytes=peak,
        parameter_bytes=peak // 8,
        gradient_bytes=peak // 8,
        optimizer_bytes=peak // 4,
    )


def p4d(**values: Any) -> Settings:
    return replace(Settings(instance="ml.p4d.24xlarge", strategy=Strategy.FSDP), **values)


def test_a_device_has_what_its_data_sheet_says() -> None:
    assert device_memory_bytes("ml.p4d.24xlarge") == 40 * GB
    assert device_memory_bytes("local.gpu") is None
    assert device_memory_bytes("ml.m7i.xlarge") is None


def test_activations_are_what_parameters_and_optimizer_leave_of_the_peak() -> None:
    parts = MemoryEstimate(
        peak_bytes=100, parameter_bytes=20, gradient_bytes=20, optimizer_bytes=30
    )
    assert parts.activation_bytes == 50
    assert replace(parts, peak_bytes=40).activation_bytes == 0


def suite_of_batches(*batches: Any, **changes: Any) -> Suite:
    batches = batches or (1, 64)
    matrix = {"batch_size_per_device": [*batches], "loader_workers": [0, 4]}
    return unprepared_suite(baseline={}, matrix=matrix, **changes)


def planned(suite: Suite, smaller_batch: int | None = 16) -> Plan:
    cells = expand_cells(suite)
    findings = {
        each: MemoryFinding(estimate=estimate(each.batch_size * GB), smaller_batch=smaller_batch)
        for each in distinct_settings(cells)
    }
    return plan_suite(
        suite,
        execution_id="execution-1",
        prices=prices_of({"ml.g5.xlarge": "1.408"}),
        quotas={},
        histories={},
        memory=memory_of_cells(cells, findings),
    )


def test_a_cell_beyond_its_device_is_refused_with_what_would_help() -> None:
    reasons = planned(suite_of_batches()).refusals
    assert len(reasons) == 2, "64 GB on an A10G of 24 GB, with 0 and with 4 loader workers"
    assert (
        "needs 59.6 GiB per device by estimate, and a device of ml.g5.xlarge has 22.4 GiB, of which"
        in reasons[0]
    )
    assert "What may help: batch_size_per_device 16" in reasons[0]


@pytest.mark.parametrize(("smaller_batch", "refused"), [(16, 0), (None, 2)])
def test_a_search_that_begins_too_high_is_refused_only_if_no_smaller_batch_fits(
    smaller_batch: int | None, refused: int
) -> None:
    """It goes down to a batch that fits by itself."""
    suite = suite_of_batches({"search": "largest", "begin": 64})
    assert len(planned(suite, smaller_batch).refusals) == refused


@pytest.mark.parametrize(
    ("instance", "peak_gb", "is_too_large"),
    [("ml.g5.xlarge", 22, False), ("ml.g5.xlarge", 23, True), ("ml.trn1.2xlarge", 16, False)],
)
def test_a_gpu_keeps_memory_for_what_no_estimate_contains(
    instance: str, peak_gb: int, is_too_large: bool
) -> None:
    """1.5 GiB = 1.61 GB: an A10G of 24 GB has 22.39 for tensors, a NeuronCore of 16 GB all."""
    settings = Settings(instance=instance)
    cell = replace(expand_cells(suite_of_batches())[0], settings=settings)
    finding = MemoryFinding(estimate=estimate(peak_gb * GB))
    (memory,) = memory_of_cells([cell], {memory_settings(settings): finding})
    assert memory.finding.is_too_large(instance) is is_too_large
    batch = fitting_batch(finding.estimate, settings, usable_memory_bytes(instance))
    assert (batch is None) is is_too_large
    assert (usable_memory_bytes(instance) == device_memory_bytes(instance)) is instance.startswith(
        "ml.trn"
    )


@pytest.mark.parametrize(
    ("device_gb", "settings", "batch"),
    [
        # 12 of 32 GB are parameters and optimizer state, 20 are activations of 4 samples: 5 GB a
        # sample
        (40, {}, 5),  # 28 // 5
        (80, {}, 13),  # 68 // 5
        (80, {"strategy": Strategy.PIPELINE, "micro_batches": 4}, 12),  # whole micro batches
        (31, {}, None),  # does not fit: the finding names a smaller batch
        (None, {}, None),
    ],
)
def test_a_cell_that_fits_names_a_batch_that_fits(
    device_gb: int | None, settings: dict[str, Any], batch: int | None
) -> None:
    device = None if device_gb is None else device_gb * GB
    assert (
        fitting_batch(estimate(32 * GB), p4d(batch_size_per_device=4, **settings), device) == batch
    )
    assert fitting_batch(None, p4d(), device) is None


def test_without_an_estimate_nothing_is_refused() -> None:
    assert not MemoryFinding(why_unknown="not tried").is_too_large("ml.g5.xlarge")


def test_cells_that_need_the_same_memory_are_estimated_once() -> None:
    cells = expand_cells(suite_of_batches())
    assert [each.batch_size_per_device for each in distinct_settings(cells)] == [1, 64]


def test_what_changes_no_tensors_size_is_not_kept() -> None:
    given: dict[str, Any] = {
        "learning_rate": LearningRate(base=0.1),
        "lr_schedule": LearningRateSchedule.COSINE,
        "lr_warmup_steps": 10.0,
        "weight_decay": 0.5,
        "seed": 9,
        "loader_workers": 7,
        "pin_memory": True,
        "image": "mine",
    }
    assert memory_settings(p4d(**given)) == p4d()
    assert list(WITHOUT_EFFECT) == list(given)
    assert memory_settings(p4d(batch_size_per_device=2, seed=9)) == p4d(batch_size_per_device=2)


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"loader_workers": 8}, True),
        ({"seed": 7}, True),
        ({"batch_size_per_device": 2}, False),
        ({"activation_checkpointing": True}, False),
        ({"instance_count": 2}, False),
        ({"optimizer": "sgd"}, False),
    ],
)
def test_the_key_changes_with_what_changes_the_memory(
    changes: dict[str, Any], is_same: bool
) -> None:
    workload = suite_of_batches().workload
    keys = {memory_key(workload, settings, code="1") for settings in (p4d(), p4d(**changes))}
    assert (len(keys) == 1) is is_same
    assert memory_key(workload, p4d(), code="2") not in keys
