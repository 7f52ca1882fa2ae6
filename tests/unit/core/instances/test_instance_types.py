"""The table of instance types against botocore's enum, and the facts in it."""

import json
from dataclasses import asdict
from importlib.resources import files

import botocore.session
import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import known
from traindyno.core.instances.devices import AcceleratorKind, devices
from traindyno.core.instances.instance_types import (
    close_instance_types,
    instance_types,
)

ENUM = (
    botocore.session.get_session()
    .get_service_model("sagemaker")
    .shape_for("TrainingInstanceType")
    .metadata["enum"]
)


def test_every_type_for_a_training_job_is_in_the_table() -> None:
    assert {name for name in instance_types() if not name.startswith("local.")} == set(ENUM)


@pytest.mark.parametrize(
    ("name", "kind", "devices", "vcpus", "gib"),
    [
        ("ml.g4dn.12xlarge", AcceleratorKind.GPU, 4, 48, 192),
        ("ml.g5.xlarge", AcceleratorKind.GPU, 1, 4, 16),
        (
            "ml.p4d.24xlarge",
            AcceleratorKind.GPU,
            8,
            96,
            1152,
        ),  # the post's tip: 12 loader workers for each GPU
        ("ml.p5.48xlarge", AcceleratorKind.GPU, 8, 192, 2048),
        ("ml.trn1.32xlarge", AcceleratorKind.NEURON, 32, 128, 512),
        ("ml.trn2.48xlarge", AcceleratorKind.NEURON, 64, 192, 2048),
        ("ml.c4.8xlarge", AcceleratorKind.NONE, 1, 36, 60),
    ],
)
def test_types_by_hand(
    name: str, kind: AcceleratorKind, devices: int, vcpus: int, gib: float
) -> None:
    instance_type = instance_types()[name]
    assert (
        instance_type.accelerator_kind,
        instance_type.devices_per_instance,
        instance_type.vcpus,
    ) == (
        kind,
        devices,
        vcpus,
    )
    assert instance_type.memory_gib == gib


def test_every_type_has_the_columns_of_the_host() -> None:
    rows = json.loads((files("traindyno.core.instances.data") / "instance_types.json").read_text())[
        "types"
    ]
    remote = {name: row for name, row in rows.items() if not name.startswith("local.")}
    assert {
        name for name, row in remote.items() if not {"vcpus", "memory_gib", "nvme"} <= row.keys()
    } == set()
    assert {name for name, row in remote.items() if None in (row["vcpus"], row["nvme"])} == set()
    assert all(row["memory_gib"] for row in remote.values())


def test_all_types_of_a_family_have_nvme_disks_or_none_has(snapshot: Snapshot) -> None:
    remote = [
        instance_type for instance_type in instance_types().values() if not instance_type.is_local
    ]
    with_disks = {instance_type.family for instance_type in remote if instance_type.has_nvme}
    snapshot(" ".join(sorted(with_disks)))
    assert with_disks.isdisjoint(
        instance_type.family for instance_type in remote if not instance_type.has_nvme
    )


def test_two_types_only_have_another_number_of_vcpus_than_four_for_each_xlarge() -> None:
    remote = [
        instance_type for instance_type in instance_types().values() if not instance_type.is_local
    ]
    assert {
        instance_type.name
        for instance_type in remote
        if instance_type.vcpus != size_of(instance_type.name) * 4
    } == {
        "ml.t3.medium",  # 2, as t3.large
        "ml.c4.8xlarge",  # 36
    }


def size_of(name: str) -> float:
    """xlarge is 1."""
    size = name.rsplit(".", 1)[1].removesuffix("large")
    return {"medium": 0.25, "": 0.5, "x": 1.0}.get(size) or float(size.removesuffix("x"))


@pytest.mark.parametrize(
    ("name", "instance_gb"),
    [
        ("ml.p6-b200.48xlarge", 1_440),
        ("ml.p6-b300.48xlarge", 2_144),
        ("ml.p6e-gb200.36xlarge", 740),
    ],
)
def test_the_memory_of_a_p6_instance_is_awss_figure(name: str, instance_gb: int) -> None:
    instance_type = instance_types()[name]
    assert known(instance_type.device.memory_gb) * instance_type.devices_per_instance == instance_gb


def test_every_accelerator_of_aws_for_training_has_devices_memory_and_a_peak() -> None:
    """A plan with estimates can refuse a cell on any of them, a simulation any impossible rate."""
    unknown = {
        instance_type.name
        for instance_type in instance_types().values()
        if instance_type.has_accelerator
        and not (
            instance_type.device.memory_gb
            and instance_type.device.half_flops
            and instance_type.devices_per_instance
        )
    }
    assert unknown == {"local.gpu"}


@pytest.mark.parametrize(
    ("name", "instance_flops", "has_bf16"),
    [
        ("ml.p2.16xlarge", 69.92e12, False),  # 8 boards of 8.74 TFLOPS, in single precision
        ("ml.p3.16xlarge", 1e15, False),  # AWS: up to one petaflop in mixed precision
        ("ml.p3dn.24xlarge", 1e15, False),
        ("ml.g4dn.12xlarge", 260e12, False),  # the post's: 4 of 65
        ("ml.g7.24xlarge", 878.8e12, True),
        ("ml.g7e.48xlarge", 4.03e15, True),
        ("ml.p6-b300.48xlarge", 18e15, True),
        ("ml.p6e-gb200.36xlarge", 10e15, True),
        ("ml.trn2.48xlarge", 10.672e15, True),  # 16 chips of 667
    ],
)
def test_the_dense_16_bit_peak_of_an_instance(
    name: str, instance_flops: float, has_bf16: bool
) -> None:
    instance_type = instance_types()[name]
    peak = known(instance_type.device.half_flops) * instance_type.devices_per_instance
    assert peak == pytest.approx(instance_flops, rel=1e-3)
    assert instance_type.device.has_bf16 is has_bf16


def test_unknown_figures_are_none_and_never_zero() -> None:
    assert devices()["this machine's GPU"].memory_gb is None
    assert 0 not in {
        value
        for device in devices().values()
        for value in asdict(device).values()
        if not isinstance(value, bool)
    }


def test_every_device_is_in_a_type() -> None:
    assert set(devices()) == {
        instance_type.accelerator for instance_type in instance_types().values()
    } - {None}


def test_types_without_a_training_quota_are_marked() -> None:
    withdrawn = {
        name
        for name, instance_type in instance_types().items()
        if not instance_type.has_training_quota
    }
    assert withdrawn == {"ml.p3.2xlarge", "ml.p3.8xlarge", "ml.p3.16xlarge"}


def test_only_this_machines_types_share_their_host_and_have_unknown_vcpus() -> None:
    assert [
        name for name, instance_type in instance_types().items() if instance_type.shares_host
    ] == [
        "local.cpu",
        "local.gpu",
    ]
    assert [
        name for name, instance_type in instance_types().items() if instance_type.vcpus is None
    ] == [
        "local.cpu",
        "local.gpu",
    ]


def test_at_most_three_types_are_proposed_for_a_misspelt_one() -> None:
    assert close_instance_types("ml.g5.xlrge")[0] == "ml.g5.xlarge"
    assert len(close_instance_types("ml.g5.xlrge")) == 3
    assert close_instance_types("something else") == []
