"""Writes the accounts of AWS's images by region from the SageMaker SDK's own tables: ``make
image-tables``.

The tables are read from the wheel of sagemaker-core, version 3 of the SDK, which is neither
installed nor run.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from traindyno.core.lab_names import OTHER_PARTITIONS

TABLES = {
    "deep_learning_containers": "pytorch.json",
    "smdistributed_modelparallel": "pytorch-smp.json",
}
FOLDER = "sagemaker/core/image_uri_config"
# The images from before 2019 are in a separate account.
OLD_REPOSITORY = "sagemaker-pytorch"
TARGET = Path(__file__).parents[3] / "traindyno/sagemaker/data/image_accounts.json"


def read_accounts(wheel: Path) -> dict[str, Any]:
    """The document of ``image_accounts.json``; raises KeyError where the wheel has no such
    table.
    """
    version = re.match(r"sagemaker_core-([0-9.]+)-", wheel.name)
    if version is None:
        raise ValueError(
            f"{wheel} is no wheel of sagemaker-core, such as sagemaker_core-2.27.0-py3-none-any.whl"
        )
    with ZipFile(wheel) as archive:
        tables = {key: json.loads(archive.read(f"{FOLDER}/{name}")) for key, name in TABLES.items()}
    names = " and ".join(name.removesuffix(".json") for name in TABLES.values())
    return {
        "source": f"image_uri_config of sagemaker-core {version[1]}: {names}",
        **{key: accounts_by_region(table) for key, table in tables.items()},
    }


def accounts_by_region(table: Mapping[str, Any]) -> dict[str, str]:
    """Region where a lab may be → account, of all versions together; a later version takes
    precedence.
    """
    accounts: dict[str, str] = {}
    for version in table["training"]["versions"].values():
        if version["repository"] != OLD_REPOSITORY:
            accounts |= version["registries"]
    return {
        region: account
        for region, account in sorted(accounts.items())
        if not region.startswith(OTHER_PARTITIONS)
    }


def main(wheel: Path) -> None:
    TARGET.write_text(json.dumps(read_accounts(wheel), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
