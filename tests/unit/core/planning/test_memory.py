"""Memory before money: what fits, what would make it fit, and when a suite is refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.planned_suites import prices_of
from tests.unit.suites import unprepared_suite
from traindyno.core.planning.memory import (
    MemoryEstimate,
    MemoryFinding,
    Remedy,
    device_memory_bytes,
    find_remedies,
    fitting_batch,
    memory_key,
    memory_of_cells,
    too_large_text,
    usable_memory_bytes,
)
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import ShardScope, Strategy
from traindyno.core.suite.memory_settings import distinct_settings, memory_settings
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Suite

GB = 10**9


def estimate(peak: int) -> MemoryEstimate:
    return MemoryEstimate(
        peak_bytes=peak, parameter_bytes=peak // 8, gradient_bytes=peak // 8, optimizer_bytes=peak // 4
    )


def modelled(settings: Settings) -> MemoryEstimate:
    """80 GB of state and 8 GB of activations a sample, by simple rules that a test can compute with."""
    processes = 8 * settings.instance_count if settings.strategy is Strategy.FSDP else 1
    activations = 8 * GB * settings.batch_size
    return estimate(80 * GB // processes + (activations // 4 if settings.activation_checkpointing else activations))


def p4d(**values: Any) -> Settings:
    return replace(Settings(instance="ml.p4d.24xlarge", strategy=Strategy.FSDP), **values)


def test_a_device_has_what_its_data_sheet_says() -> None:
    assert device_memory_bytes("ml.p4d.24xlarge") == 40 * GB
    assert device_memory_bytes("local.gpu") is None
    assert device_memory_bytes("ml.m7i.xlarge") is None


def test_batches_are_halved_until_one_fits() -> None:
    # 10 GB of state and 3 x 8 of activations fit into 40 GB, 6 x 8 do not
    (smaller,) = (
        remedy.changes["batch_size_per_device"]
        for remedy in find_remedies(p4d(batch_size_per_device=6), modelled)
        if set(remedy.changes) == {"batch_size_per_device"}
    )
    assert smaller == 3


def test_each_remedy_is_the_smallest_change_of_its_kind() -> None:
    # 80/8 = 10 GB of state + 16 x 8 = 128 GB; checkpointing 10 + 32 = 42 is too much for 40 GB; batches 8 (74), 4 (42),
    # 2 (26 GB) fit; more instances never do, for the activations alone are 128 GB.
    found = find_remedies(p4d(batch_size_per_device=16), modelled)
    assert found == (Remedy(changes={"batch_size_per_device": 2}, peak_bytes=26 * GB),)


def test_changes_are_combined_where_none_fits_alone() -> None:
    # ddp: 80 GB of state always; fsdp over 8: 10 + 4 x 8 = 42; over 16: 5 + 32 = 37 GB fits
    found = find_remedies(p4d(strategy=Strategy.DDP, batch_size_per_device=4), modelled)
    assert found == (Remedy(changes={"strategy": Strategy.FSDP, "instance_count": 2}, peak_bytes=37 * GB),)
    # 64 samples with ddp: only all together fit: fsdp over 8 with one sample, checkpointed: 10 + 2 = 12 GB
    found = find_remedies(p4d(strategy=Strategy.DDP, batch_size_per_device=64), modelled)
    assert [remedy.peak_bytes for remedy in found] == [12 * GB]
    assert found[0].text() == ("strategy: fsdp, batch_size_per_device: 1, activation_checkpointing: true (11.2 GiB)")


def test_activations_are_what_parameters_and_optimizer_leave_of_the_peak() -> None:
    parts = MemoryEstimate(peak_bytes=100, parameter_bytes=20, gradient_bytes=20, optimizer_bytes=30)
    assert parts.activation_bytes == 50
    assert replace(parts, peak_bytes=40).activation_bytes == 0


def test_nothing_is_offered_that_was_not_estimated() -> None:
    assert find_remedies(p4d(batch_size_per_device=2), lambda _: None) == ()


def suite_of_batches(*batches: Any, **changes: Any) -> Suite:
    batches = batches or (1, 64)
    matrix = {"batch_size_per_device": [*batches], "loader_workers": [0, 4]}
    return unprepared_suite(baseline={}, matrix=matrix, **changes)


def planned(suite: Suite, remedy: Mapping[str, Any] | None = None) -> Plan:
    cells, changes = expand_cells(suite), remedy or {"batch_size_per_device": 16}
    findings = {
        each: MemoryFinding(
            estimate=estimate(each.batch_size * GB),
            remedies=(Remedy(changes=changes, peak_bytes=16 * GB),),
        )
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
    reasons = [refusal.reason for refusal in planned(suite_of_batches()).refusals]
    assert len(reasons) == 2, "64 GB on an A10G of 24 GB, with 0 and with 4 loader workers"
    assert "needs 59.6 GiB per device by estimate, and a device of ml.g5.xlarge has 22.4 GiB" in reasons[0]
    assert "It would fit with: batch_size_per_device: 16 (14.9 GiB)" in reasons[0]


@pytest.mark.parametrize(
    ("remedy", "refused"), [({"batch_size_per_device": 16}, 0), ({"batch_size_per_device": 16, "strategy": "fsdp"}, 2)]
)
def test_a_search_that_begins_too_high_is_refused_only_if_no_smaller_batch_fits(
    remedy: dict[str, Any], refused: int
) -> None:
    """It goes down to a batch that fits by itself."""
    suite = suite_of_batches({"search": "largest", "begin": 64})
    assert len(planned(suite, remedy).refusals) == refused


@pytest.mark.parametrize(("instance", "too_much_gb"), [("ml.p6-b200.48xlarge", 181), ("ml.p6-b300.48xlarge", 269)])
def test_a_cell_beyond_a_blackwell_device_is_refused_too(instance: str, too_much_gb: int) -> None:
    training = {"instance": instance, "strategy": "ddp"}
    suite = unprepared_suite(baseline={}, training=training, matrix={"batch_size_per_device": [1, too_much_gb]})
    (reason,) = [each.reason for each in planned(suite).refusals if "by estimate" in each.reason]
    assert f"a device of {instance} has" in reason


@pytest.mark.parametrize(
    ("instance", "peak_gb", "is_too_large"),
    [("ml.g5.xlarge", 22, False), ("ml.g5.xlarge", 23, True), ("ml.trn1.2xlarge", 16, False)],
)
def test_a_gpu_keeps_memory_for_what_no_estimate_contains(instance: str, peak_gb: int, is_too_large: bool) -> None:
    """1.5 GiB = 1.61 GB: an A10G of 24 GB has 22.39 for tensors, a NeuronCore of 16 GB all."""
    settings = Settings(instance=instance)
    cell = replace(expand_cells(suite_of_batches())[0], settings=settings)
    finding = MemoryFinding(estimate=estimate(peak_gb * GB))
    (memory,) = memory_of_cells([cell], {memory_settings(settings): finding})
    assert memory.finding.is_too_large(instance) is is_too_large
    batch = fitting_batch(finding.estimate, settings, usable_memory_bytes(instance))
    assert (batch is None) is is_too_large
    assert (usable_memory_bytes(instance) == device_memory_bytes(instance)) is instance.startswith("ml.trn")
    if is_too_large:
        assert "has 22.4 GiB, of which 1.50 GiB are not for tensors" in too_large_text("it", instance, finding)


def test_a_remedy_leaves_that_memory_too() -> None:
    # 39 GB are less than an A100's 40, but leave less than 1.5 GiB
    def of_batch(settings: Settings) -> MemoryEstimate:
        return estimate(39 * GB if settings.batch_size_per_device == 4 else 20 * GB)

    found = find_remedies(p4d(batch_size_per_device=8, activation_checkpointing=True), of_batch)
    assert found[0].changes == {"batch_size_per_device": 2}


@pytest.mark.parametrize(
    ("device_gb", "settings", "batch"),
    [
        # 12 of 32 GB are parameters and optimizer state, 20 are activations of 4 samples: 5 GB a sample
        (40, {}, 5),  # 28 // 5
        (80, {}, 13),  # 68 // 5
        (80, {"strategy": Strategy.PIPELINE, "micro_batches": 4}, 12),  # whole micro batches
        (31, {}, None),  # does not fit: the remedies name a smaller batch
        (None, {}, None),
    ],
)
def test_a_cell_that_fits_names_a_batch_that_fits(
    device_gb: int | None, settings: dict[str, Any], batch: int | None
) -> None:
    device = None if device_gb is None else device_gb * GB
    assert fitting_batch(estimate(32 * GB), p4d(batch_size_per_device=4, **settings), device) == batch
    assert fitting_batch(None, p4d(), device) is None


def test_without_an_estimate_nothing_is_refused() -> None:
    assert not MemoryFinding(why_unknown="not tried").is_too_large("ml.g5.xlarge")


def test_cells_that_need_the_same_memory_are_estimated_once() -> None:
    cells = expand_cells(suite_of_batches())
    assert [each.batch_size_per_device for each in distinct_settings(cells)] == [1, 64]


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
def test_the_key_changes_with_what_changes_the_memory(changes: dict[str, Any], is_same: bool) -> None:
    workload = suite_of_batches().workload
    keys = {memory_key(workload, settings, code="1") for settings in (p4d(), p4d(**changes))}
    assert (len(keys) == 1) is is_same
    assert memory_key(workload, p4d(), code="2") not in keys


def test_checkpointing_alone_helps_where_activations_are_the_rest() -> None:
    # 10 GB of state and 40 GB of activations, a quarter of them checkpointed: 20 GB; two samples: 26 GB
    found = find_remedies(p4d(batch_size_per_device=5), modelled)
    assert [remedy.changes for remedy in found] == [{"activation_checkpointing": True}, {"batch_size_per_device": 2}]
    assert [remedy.peak_bytes for remedy in found] == [20 * GB, 26 * GB]
    # what is checkpointed already is not offered again
    already = find_remedies(p4d(batch_size_per_device=20, activation_checkpointing=True), modelled)
    assert already[0].changes == {"batch_size_per_device": 10}


@pytest.mark.parametrize(("state_gb", "instances"), [(300, 1), (600, 2), (2_400, 8), (2_600, None)])
def test_state_is_sharded_over_eight_times_the_instances_at_most(state_gb: int, instances: int | None) -> None:
    def sharded(settings: Settings) -> MemoryEstimate:
        processes = 8 * settings.instance_count if settings.strategy is Strategy.FSDP else 1
        return estimate(state_gb * GB // processes)

    found = find_remedies(p4d(strategy=Strategy.DDP), sharded)
    changes = [remedy.changes for remedy in found]
    more = {} if instances == 1 else {"instance_count": instances}
    assert changes == ([] if instances is None else [{"strategy": Strategy.FSDP, **more}])


@pytest.mark.parametrize("shards", [None, 4])
def test_a_mesh_gets_more_shards_and_keeps_its_other_degrees(shards: int | None) -> None:
    def sharded(settings: Settings) -> MemoryEstimate:
        return estimate(60 * GB // settings.instance_count)

    mesh = p4d(strategy=Strategy.MESH, tensor_degree=2, shard_degree=shards, activation_checkpointing=True)
    (found,) = find_remedies(mesh, sharded)
    assert found.changes == {"instance_count": 2, **({} if shards is None else {"shard_degree": 8})}


def test_a_hybrid_scope_is_widened_first_and_pipelines_are_not_sharded() -> None:
    def scoped(settings: Settings) -> MemoryEstimate:
        return estimate(20 * GB if settings.shard_scope is ShardScope.FULL else 80 * GB)

    hybrid = p4d(shard_scope=ShardScope.HYBRID, instance_count=2, activation_checkpointing=True)
    (found,) = find_remedies(hybrid, scoped)
    assert found.changes == {"shard_scope": ShardScope.FULL}
    assert find_remedies(p4d(strategy=Strategy.PIPELINE), lambda _: estimate(80 * GB)) == ()
