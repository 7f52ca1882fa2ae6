"""Image addresses against the SageMaker SDK's own tables."""

import json
from importlib.metadata import files
from pathlib import Path

import pytest

from traindyno.core.lab_names import OTHER_PARTITIONS
from traindyno.sagemaker.images import stock_image_uri

# Each worker collects this module, and the SDK's import takes seconds.
(PYTORCH_TABLE,) = (
    file
    for file in files("sagemaker") or ()
    if file.match("sagemaker/image_uri_config/pytorch.json")
)
TABLES = Path(str(PYTORCH_TABLE.locate())).parent


def sdk_accounts(table: str) -> dict[str, str]:
    document = json.loads((TABLES / f"{table}.json").read_text())
    versions = document.get("training", document)["versions"].values()
    return {
        region: account
        for version in versions
        if "registries" in version
        for region, account in version["registries"].items()
        if version["repository"] != "sagemaker-pytorch"
    }


@pytest.mark.parametrize(
    ("table", "image"),
    [
        ("pytorch", "pytorch-training:2.8.0-gpu-py312"),
        ("pytorch-smp", "smdistributed-modelparallel:2.5.1-gpu-py311-cu124"),
    ],
)
def test_accounts_are_the_sdks_in_every_region(table: str, image: str) -> None:
    for region, account in sdk_accounts(table).items():
        if region.startswith(OTHER_PARTITIONS):
            continue  # labs work in no such region
        assert stock_image_uri(image, region).split(".")[0] == account, region


@pytest.mark.parametrize("region", ["us-east-1", "eu-south-2"])
def test_the_sdk_retrieves_the_same_address(region: str) -> None:
    from sagemaker import image_uris

    theirs = image_uris.retrieve(
        "pytorch",
        region,
        version="2.5.1",
        py_version="py311",
        instance_type="ml.p4d.24xlarge",
        image_scope="training",
    )
    assert stock_image_uri("pytorch-training:2.5.1-gpu-py311", region) == theirs
