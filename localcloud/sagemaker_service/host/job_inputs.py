"""Downloads a job's code and channels from S3 into the hosts' folders."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.host.container_tree import HostTree, share
from localcloud.sagemaker_service.host.toolkit import Program
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.storage.s3_transfer import (
    DataUnavailable,
    S3Transfer,
    relative_name,
    split_uri,
    unpack_data,
)


def download_source(transfer: S3Transfer, program: Program, trees: Sequence[HostTree], job_folder: Path) -> None:
    """Unpacks the source archive once and links it as every host's code folder."""
    bucket, key = split_uri(program.source_uri)
    archive = transfer.download(bucket, key, job_folder / "sourcedir.tar.gz")
    code = job_folder / "code"
    code.mkdir()
    unpack_data(archive, code)
    archive.unlink()
    if not (code / program.entry_point).is_file():
        found = ", ".join(sorted(path.name for path in code.iterdir())) or "nothing"
        raise DataUnavailable(
            f"ClientError: the source archive {program.source_uri} has no {program.entry_point}; it holds {found}"
        )
    share(code, [tree.code for tree in trees])


def download_channels(transfer: S3Transfer, job: TrainingJob, trees: Sequence[HostTree], job_folder: Path) -> None:
    for channel in job.request.get("InputDataConfig", ()):
        name = channel["ChannelName"]
        if name in {".", ".."}:
            raise DataUnavailable(f"ClientError: a channel can't be named {name!r}: it is no name of a folder")
        source = channel["DataSource"]["S3DataSource"]
        places = [tree.input / "data" / name for tree in trees]
        if source.get("S3DataDistributionType") == "ShardedByS3Key":
            _download_shards(transfer, source, places)
        else:
            shared = job_folder / "channels" / name
            transfer.download_prefix(source["S3Uri"], shared)
            share(shared, places)


def _download_shards(transfer: S3Transfer, source: Mapping[str, Any], places: Sequence[Path]) -> None:
    """Downloads the objects in the order of their keys to the hosts in turn."""
    bucket, prefix = split_uri(source["S3Uri"])
    keys = sorted(key for key, _ in transfer.list_objects(source["S3Uri"]) if not key.endswith("/"))
    for number, key in enumerate(keys):
        transfer.download(bucket, key, places[number % len(places)] / relative_name(key, prefix))


def remove_inputs(job_folder: Path) -> None:
    """Removes the inputs, which can be downloaded again, and keeps configuration and logs."""
    for name in ("channels", "code"):
        shutil.rmtree(job_folder / name, ignore_errors=True)
    for host_folder in job_folder.glob("algo-*"):
        shutil.rmtree(host_folder / "ml", ignore_errors=True)
