"""The table of instance types against botocore's enum, and the facts in it."""

import botocore.session
import pytest

from traindyno.core.instances.instance_types import (
    AcceleratorKind,
    close_instance_types,
    find_instance_type,
    instance_types,
)

ENUM = botocore.session.get_session().get_service_model("sagemaker").shape_for("TrainingInstanceType").metadata["enum"]


def test_every_type_that_a_training_job_may_name_is_in_the_table() -> None:
    assert {name for name in instance_types() if not name.startswith("local.")} == set(ENUM)


@pytest.mark.parametrize(
    ("name", "kind", "devices"),
    [
        ("ml.g4dn.12xlarge", AcceleratorKind.GPU, 4),
        ("ml.g5.xlarge", AcceleratorKind.GPU, 1),
        ("ml.p4d.24xlarge", AcceleratorKind.GPU, 8),
        ("ml.p5.4xlarge", AcceleratorKind.GPU, 1),
        ("ml.trn1.32xlarge", AcceleratorKind.NEURON, 32),
        ("ml.trn2.48xlarge", AcceleratorKind.NEURON, 64),
        ("ml.m5.large", AcceleratorKind.NONE, 1),
        ("local.cpu", AcceleratorKind.NONE, 1),
    ],
)
def test_devices_by_hand(name: str, kind: AcceleratorKind, devices: int) -> None:
    found = instance_types()[name]
    assert (found.accelerator_kind, found.devices_per_instance) == (kind, devices)


def test_peak_flops_of_a_whole_trn1_instance_is_awss_figure() -> None:
    trn1 = instance_types()["ml.trn1.32xlarge"]
    assert trn1.peak_dense_bf16_flops_per_device is not None
    # 32 NeuronCores x 95e12 = 3.04e15, the instance's published bf16 figure
    assert trn1.peak_dense_bf16_flops_per_device * 32 == pytest.approx(3.04e15)


def test_what_is_not_known_is_none_and_never_zero() -> None:
    assert instance_types()["ml.p3.16xlarge"].peak_dense_bf16_flops_per_device is None
    assert instance_types()["ml.g7.24xlarge"].devices_per_instance is None
    numbers = [
        value
        for found in instance_types().values()
        for value in (found.devices_per_instance, found.peak_dense_bf16_flops_per_device, found.device_memory_gb)
    ]
    assert 0 not in numbers


def test_types_without_a_training_quota_are_marked() -> None:
    withdrawn = {name for name, found in instance_types().items() if not found.has_training_quota}
    assert withdrawn == {"ml.p3.2xlarge", "ml.p3.8xlarge", "ml.p3.16xlarge"}


def test_only_this_machines_own_types_share_their_host() -> None:
    assert {name for name, found in instance_types().items() if found.shares_host} == {"local.cpu", "local.gpu"}


def test_a_misspelt_type_has_close_ones() -> None:
    assert find_instance_type("ml.p4d.24xlarg") is None
    assert close_instance_types("ml.p4d.24xlarg")[0] == "ml.p4d.24xlarge"


def test_only_this_machines_types_share_their_host() -> None:
    assert [name for name, found in instance_types().items() if found.shares_host] == ["local.cpu", "local.gpu"]
    assert [name for name, found in instance_types().items() if found.is_local] == ["local.cpu", "local.gpu"]


def test_what_the_table_does_not_say_of_a_type_is_the_usual() -> None:
    g5 = instance_types()["ml.g5.xlarge"]
    assert (g5.has_rdma, g5.has_training_quota, g5.family) == (False, True, "g5")
    assert instance_types()["ml.p5.48xlarge"].has_rdma


def test_at_most_three_types_are_proposed_for_a_misspelt_one() -> None:
    assert close_instance_types("ml.g5.xlrge")[0] == "ml.g5.xlarge"
    assert len(close_instance_types("ml.g5.xlrge")) == 3
    assert close_instance_types("something else") == []
