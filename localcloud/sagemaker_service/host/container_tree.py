"""Makes the folders that a training container finds under /opt/ml, for each host of a job."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.storage.safe_paths import stays_inside

CONTAINER_ROOT = "/opt/ml"
OUTSIDE_CONTAINER_ROOT = "this local service keeps everything under /opt/ml"
LOOPBACK_INTERFACE = "lo"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTree:
    """One host's /opt/ml. Its input data and code are links to the job's single copy."""

    host: str
    root: Path

    def localised(self, text: str) -> str:
        """Replaces a path below /opt/ml by this host's path, also after ``file://``.

        Any other text is returned as it is.
        """
        for lead in ("", "file://"):
            if text.startswith(lead) and is_container_path(text.removeprefix(lead)):
                return f"{lead}{self.root}{text[len(lead) + len(CONTAINER_ROOT) :]}"
        return text

    def host_path(self, container_path: str) -> Path:
        return Path(self.localised(container_path))


def is_container_path(path: str) -> bool:
    """Whether the path is below /opt/ml.

    A path with ``..`` is not, because it may leave the folder.
    """
    return path == CONTAINER_ROOT or (
        path.startswith(f"{CONTAINER_ROOT}/") and stays_inside(path[1:])
    )


def make_host_tree(job_folder: Path, host: str) -> HostTree:
    tree = HostTree(host=host, root=job_folder / host / "ml")
    for folder in (
        "input/config",
        "input/data",
        "model",
        "output/data",
        "output/intermediate",
        "checkpoints",
    ):
        (tree.root / folder).mkdir(parents=True, exist_ok=True)
    return tree


def resource_config(job: TrainingJob, host: str) -> dict[str, Any]:
    group = {
        "instance_group_name": "homogeneousCluster",
        "instance_type": job.instance_type,
        "hosts": job.hosts,
    }
    return {
        "current_host": host,
        "current_instance_type": job.instance_type,
        "current_group_name": group["instance_group_name"],
        "hosts": job.hosts,
        "instance_groups": [group],
        "network_interface_name": LOOPBACK_INTERFACE,
    }


def channel_config(job: TrainingJob) -> dict[str, dict[str, str]]:
    default_mode = job.request["AlgorithmSpecification"].get("TrainingInputMode", "File")
    return {
        channel["ChannelName"]: {
            "TrainingInputMode": channel.get("InputMode", default_mode),
            "S3DistributionType": channel["DataSource"]["S3DataSource"].get(
                "S3DataDistributionType", "FullyReplicated"
            ),
            "RecordWrapperType": "None",
        }
        for channel in job.request.get("InputDataConfig", ())
    }


def write_configs(job: TrainingJob, tree: HostTree, hyperparameters: Mapping[str, str]) -> None:
    documents = {
        "hyperparameters.json": dict(hyperparameters),
        "inputdataconfig.json": channel_config(job),
        "resourceconfig.json": resource_config(job, tree.host),
    }
    for name, document in documents.items():
        (tree.root / "input" / "config" / name).write_text(
            json.dumps(document, indent=1), encoding="utf-8"
        )


def share(source: Path, places: Sequence[Path]) -> None:
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(source, target_is_directory=source.is_dir())
