"""The image of each kind of job, and its address."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.unit.sagemaker.image_tables import read_accounts
from tests.unit.sagemaker.test_request import SETTINGS
from traindyno.aws.image_addresses import IMAGES
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Compiler, Strategy, Task
from traindyno.sagemaker.images import (
    ImageUnavailable,
    framework_version,
    has_framework_version,
    select_image_uri,
    stock_image_uri,
)
from traindyno.sagemaker.job_settings import JobSettings

WORKLOAD = Workload(task=Task.CAUSAL_LM, examples=1)
LAB = JobSettings(
    region="us-east-1",
    role_arn="arn",
    results_bucket="b",
    images={
        kind: f"1.dkr.ecr.us-east-1.amazonaws.com/lab:{image}" for kind, image in IMAGES.items()
    },
)


def test_a_region_without_the_image_is_named_with_the_regions_of_the_image() -> None:
    with pytest.raises(
        ImageUnavailable, match="not published in mars-1; regions that have it: af-south-1"
    ):
        stock_image_uri("pytorch-training:2.8.0-gpu-py312", "mars-1")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"instance": "ml.g5.xlarge"}, "lab:efa"),
        ({"instance": "ml.trn1.32xlarge", "compiler": Compiler.XLA}, "lab:neuron"),
        ({"instance": "ml.m5.xlarge"}, "lab:cpu"),
        (
            {"instance": "ml.p4d.24xlarge", "strategy": Strategy.SMDDP},
            "pytorch-training:2.5.1-gpu-py311",
        ),
        (
            {"instance": "ml.p4d.24xlarge", "compiler": Compiler.XLA},
            "pytorch-trcomp-training:1.13.1-gpu-py39",
        ),
        ({"instance": "ml.g5.xlarge", "image": "mine:1"}, "mine:1"),
        ({"instance": "local.cpu", "image": "mine:1"}, "local"),
        ({"instance": "local.cpu", "compiler": Compiler.XLA}, "local-xla"),
    ],
)
def test_each_kind_of_instance_has_its_image(settings: dict[str, Any], expected: str) -> None:
    assert select_image_uri(Settings(**settings), WORKLOAD, LAB).rpartition("/")[2] == expected


def test_a_script_on_a_cpu_type_needs_none_of_the_labs_packages() -> None:
    script = Workload(task=Task.SCRIPT, examples=1)
    uri = select_image_uri(Settings(instance="ml.m5.xlarge"), script, LAB)
    assert uri.endswith("/pytorch:2.13-cpu-amzn2023-sagemaker")


def test_without_images_of_its_own_the_lab_uses_awss() -> None:
    uri = select_image_uri(Settings(instance="ml.g5.xlarge"), WORKLOAD, SETTINGS)
    assert (
        uri == "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch:2.13-cu133-amzn2023-sagemaker"
    )


def test_versions_are_read_from_awss_tags_only() -> None:
    aws = "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
    assert framework_version(f"{aws}pytorch-training:1.12-gpu-py38") == (1, 12, 0)
    assert framework_version(
        f"{aws}huggingface-pytorch-training:1.10.2-transformers4.17.0-gpu-py38"
    ) == (1, 10, 2)
    assert framework_version("111122223333.dkr.ecr.us-east-1.amazonaws.com/lab:1.2") is None
    assert not has_framework_version(f"{aws}pytorch:2.13-cu133-amzn2023-sagemaker")


def test_an_image_of_aws_by_its_name_is_in_the_account_of_the_region() -> None:
    settings = Settings(instance="ml.p4d.24xlarge", image="pytorch-training:1.12-gpu-py38")
    assert select_image_uri(settings, WORKLOAD, LAB) == (
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:1.12-gpu-py38"
    )
    in_africa = replace(LAB, region="af-south-1")
    assert select_image_uri(settings, WORKLOAD, in_africa).startswith(
        "626614931356.dkr.ecr.af-south-1."
    )


def test_an_image_of_ones_own_is_taken_as_it_is() -> None:
    own = "111122223333.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:1.12-gpu-py38"
    assert select_image_uri(Settings(instance="ml.p4d.24xlarge", image=own), WORKLOAD, LAB) == own


def test_the_table_of_accounts_is_read_from_the_wheel_of_the_sdks_third_version(
    tmp_path: Path,
) -> None:
    def table(repository: str, **versions: dict[str, str]) -> str:
        rows = {
            name: {"repository": repository, "registries": accounts}
            for name, accounts in versions.items()
        }
        return json.dumps({"training": {"versions": rows}})

    wheel = tmp_path / "sagemaker_core-9.9.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        pytorch = table("pytorch-training", first={"b": "1", "a": "2"}, second={"b": "3"})
        archive.writestr("sagemaker/core/image_uri_config/pytorch.json", pytorch)
        archive.writestr(
            "sagemaker/core/image_uri_config/pytorch-smp.json", table("smp", first={"a": "4"})
        )
    assert read_accounts(wheel) == {
        "source": "image_uri_config of sagemaker-core 9.9.0: pytorch and pytorch-smp",
        "deep_learning_containers": {"a": "2", "b": "3"},
        "smdistributed_modelparallel": {"a": "4"},
    }
