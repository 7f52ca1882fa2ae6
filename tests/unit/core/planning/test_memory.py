"""Memory before money: what fits, what would make it fit, and when a suite is refused."""

from dataclasses import replace
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.planned_suites import prices_of
from tests.unit.suites import unprepared_suite
from traindyno.core.planning.memory import (
    MemoryFinding,
    device_memory_bytes,
    finding_of,
    memory_of_cells,
    usable_memory_bytes,
)
from traindyno.core.planning.peak_lines import (
    WITHOUT_EFFECT,
    MemoryEstimate,
    PeakLines,
    ProcessPeak,
    division_of,
    estimate_key,
    has_own_events,
    is_uniform,
    settings_of_lines,
)
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import LearningRate, Settings
from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import (
    DatasetFormat,
    LearningRateSchedule,
    Padding,
    Strategy,
    Task,
)
from traindyno.core.suite.suite import Suite

GB = 10**9


def estimate(peak: int) -> MemoryEstimate:
    return MemoryEstimate(
        peak_bytes=peak,
        parameter_bytes=peak // 8,
        optimizer_bytes=peak // 4,
    )


def p4d(**values: Any) -> Settings:
    return replace(Settings(instance="ml.p4d.24xlarge", strategy=Strategy.FSDP), **values)


def test_a_device_has_the_memory_of_its_data_sheet() -> None:
    assert device_memory_bytes("ml.p4d.24xlarge") == 40 * GB
    assert device_memory_bytes("local.gpu") is None
    assert device_memory_bytes("ml.m7i.xlarge") is None


def test_activations_are_the_peak_without_parameters_and_optimizer() -> None:
    parts = MemoryEstimate(peak_bytes=100, parameter_bytes=20, optimizer_bytes=30)
    assert parts.activation_bytes == 50
    assert replace(parts, peak_bytes=40).activation_bytes == 0


def suite_of_batches(*batches: Any, **changes: Any) -> Suite:
    batches = batches or (1, 64)
    matrix = {"batch_size_per_device": [*batches], "loader_workers": [0, 4]}
    return unprepared_suite(baseline={}, matrix=matrix, **changes)


def lines(*of_lines: tuple[float, float]) -> PeakLines:
    held = {"parameter_bytes": GB, "optimizer_bytes": 2 * GB}
    return PeakLines(processes=(ProcessPeak(lines=of_lines, **held),))


def planned(suite: Suite, largest_batch: int = 16) -> Plan:
    cells = suite.cells

    def find(settings: Settings) -> MemoryFinding:
        return MemoryFinding(
            estimate=estimate(settings.batch_size * GB), largest_batch=largest_batch
        )

    return plan_suite(
        suite,
        execution_id="execution-1",
        prices=prices_of({"ml.g5.xlarge": "1.408"}),
        quotas={},
        histories={},
        memory=memory_of_cells(cells, find),
    )


def test_a_cell_beyond_its_device_is_refused_with_remedies(snapshot: Snapshot) -> None:
    reasons = planned(suite_of_batches()).refusals
    assert len(reasons) == 2, "64 GB on an A10G of 24 GB, with 0 and with 4 loader workers"
    snapshot(reasons[0])
    assert "What may help: batch_size_per_device 16" in reasons[0]


@pytest.mark.parametrize(("largest_batch", "refused"), [(16, 0), (0, 2)])
def test_a_search_from_too_high_is_refused_only_if_no_smaller_batch_fits(
    largest_batch: int, refused: int
) -> None:
    """It goes down to a batch that fits by itself."""
    suite = suite_of_batches({"search": "largest", "begin": 64})
    assert len(planned(suite, largest_batch).refusals) == refused


@pytest.mark.parametrize(
    ("instance", "peak_gb", "is_too_large"),
    [("ml.g5.xlarge", 22, False), ("ml.g5.xlarge", 23, True), ("ml.trn1.2xlarge", 16, False)],
)
def test_a_gpu_keeps_memory_beyond_the_estimate(
    instance: str, peak_gb: int, is_too_large: bool
) -> None:
    """1.5 GiB = 1.61 GB: an A10G of 24 GB has 22.39 for tensors, a NeuronCore of 16 GB all."""
    settings = Settings(instance=instance)
    finding = finding_of(settings, lines=lines((peak_gb * GB, 0), (0, GB)), whole=None)
    assert finding.is_too_large(instance) is is_too_large
    assert (finding.largest_batch == 0) is is_too_large
    assert (usable_memory_bytes(instance) == device_memory_bytes(instance)) is instance.startswith(
        "ml.trn"
    )


@pytest.mark.parametrize(
    ("settings", "batch"),
    [
        # Of 38.39 GB for tensors: (38.39 - 12) / 5 = 5.3, and (38.39 - 20) / 3 = 6.1
        ({}, 5),
        ({"strategy": Strategy.PIPELINE, "micro_batches": 4}, 4),  # whole micro batches
    ],
)
def test_the_largest_batch_is_below_every_line(settings: dict[str, Any], batch: int) -> None:
    finding = finding_of(
        p4d(**settings), lines=lines((12 * GB, 5 * GB), (20 * GB, 3 * GB)), whole=None
    )
    assert finding.largest_batch == batch
    assert finding.estimate is not None
    assert finding.estimate.peak_bytes == 23 * GB, "the second line's at a batch of 1"
    whole = estimate(50 * GB)
    assert finding_of(p4d(), lines=None, whole=whole) == MemoryFinding(estimate=whole)


def test_without_an_estimate_nothing_is_refused() -> None:
    assert not MemoryFinding(why_unknown="not tried").is_too_large("ml.g5.xlarge")


def test_settings_without_effect_on_tensors_are_not_kept() -> None:
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
    assert list(WITHOUT_EFFECT) == list(given)
    assert settings_of_lines(p4d(**given), 8) == settings_of_lines(p4d(), 8)


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"loader_workers": 8}, True),
        ({"seed": 7}, True),
        ({"batch_size_per_device": 2}, True),
        ({"global_batch_size": 8}, True),
        ({"global_batch_size": 64}, False),  # 8 passes of 8 samples accumulate gradients
        ({"activation_checkpointing": True}, False),
        ({"instance_count": 2}, False),
        ({"optimizer": "sgd"}, False),
    ],
)
def test_the_key_changes_with_the_settings_of_memory(
    changes: dict[str, Any], is_same: bool
) -> None:
    workload = suite_of_batches().workload

    def key(settings: Settings, code: str = "1") -> str:
        processes = world_size(settings)
        assert processes is not None
        division = division_of(settings_of_lines(settings, processes), processes)
        return estimate_key(workload, code=code, **division)

    assert (key(p4d()) == key(p4d(**changes))) is is_same
    assert key(p4d(), code="2") != key(p4d())


def test_sequences_with_a_rest_of_padding_have_a_mask_however_few_they_are() -> None:
    texts, chats = (
        replace(
            suite_of_batches().workload,
            task=Task.CAUSAL_LM,
            dataset=Dataset(path="data", format=kind),
        )
        for kind in (DatasetFormat.JSON, DatasetFormat.CHAT)
    )
    packed = p4d(packing=True)
    assert is_uniform(texts, packed)
    assert not is_uniform(chats, packed)
    assert estimate_key(texts) != estimate_key(chats)
    events = [has_own_events(chats, replace(packed, padding=padding)) for padding in Padding]
    assert events == [padding is Padding.LONGEST for padding in Padding]


@pytest.mark.parametrize(
    ("strategy", "same"),
    [
        (Strategy.DDP, [4, 8, 8, 16]),
        (Strategy.ZERO1, [8, 8]),
        (Strategy.FSDP, [8, 8]),
    ],
)
def test_lines_are_those_of_as_many_shards_on_any_instances(
    strategy: Strategy, same: list[int]
) -> None:
    """Only what is sharded gets smaller with the processes."""
    divisions = [
        (processes, division_of(p4d(strategy=strategy, instance_count=count), processes))
        for processes, count in ((4, 1), (8, 1), (8, 2), (16, 2), (1, 1))
    ]
    of_eight = divisions[1][1]
    assert [processes for processes, found in divisions if found == of_eight] == same
