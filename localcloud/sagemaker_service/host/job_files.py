"""The files of a job: code and channels from S3, outputs and logs to it, and step logs."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from localcloud.sagemaker_service.host.container_tree import HostTree, share
from localcloud.sagemaker_service.host.toolkit import ToolkitProgram
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_view import is_uncompressed, output_uri
from localcloud.sagemaker_service.jobs.job_work import is_shared, job_of_run, read_work
from localcloud.sagemaker_service.storage.s3_transfer import (
    DataUnavailable,
    S3Transfer,
    pack_folders,
    relative_name,
    split_uri,
    unpack_data,
)
from traindyno.core.jobs.journal_format import (
    CONTAINER_FOLDER,
    DOCUMENT_VARIABLE,
    FOLDER_VARIABLE,
    STEP_LOG,
)
from traindyno.core.step_log.line import CONTAINER_DIRECTORY, DIRECTORY_VARIABLE

FIRST_PROCESS = "rank-00000.*.jsonl"


def download_source(
    transfer: S3Transfer, program: ToolkitProgram, trees: Sequence[HostTree], job_folder: Path
) -> None:
    """Unpacks the source archive once and links it as every host's code folder."""
    bucket, key = split_uri(program.source_uri)
    archive = transfer.download(bucket, key, job_folder / "sourcedir.tar.gz")
    code = job_folder / "code"
    code.mkdir()
    unpack_data(archive, code)
    archive.unlink()
    if not (code / program.entry_point).is_file():
        files = ", ".join(sorted(path.name for path in code.iterdir())) or "nothing"
        raise DataUnavailable(
            f"ClientError: the source archive {program.source_uri} has no {program.entry_point}; "
            f"it holds {files}"
        )
    share(code, [tree.root / "code" for tree in trees])


def download_channels(
    transfer: S3Transfer, job: TrainingJob, trees: Sequence[HostTree], job_folder: Path
) -> None:
    for channel in job.request.get("InputDataConfig", ()):
        name = channel["ChannelName"]
        if name in {".", ".."}:
            raise DataUnavailable(
                f"ClientError: a channel can't be named {name!r}: it is no name of a folder"
            )
        source = channel["DataSource"]["S3DataSource"]
        places = [tree.root / "input" / "data" / name for tree in trees]
        if (
            source.get("S3DataDistributionType") == "ShardedByS3Key"
        ):  # objects to hosts in turn, by their keys
            bucket, prefix = split_uri(source["S3Uri"])
            keys = sorted(
                key for key, _ in transfer.list_objects(source["S3Uri"]) if not key.endswith("/")
            )
            for number, key in enumerate(keys):
                transfer.download(
                    bucket, key, places[number % len(places)] / relative_name(key, prefix)
                )
        else:
            shared = job_folder / "channels" / name
            transfer.download_prefix(source["S3Uri"], shared)
            share(shared, places)


def remove_inputs(job_folder: Path) -> None:
    """Removes the inputs, which can be downloaded again, and keeps configuration and logs."""
    for name in ("channels", "code"):
        shutil.rmtree(job_folder / name, ignore_errors=True)
    for host_folder in job_folder.glob("algo-*"):
        shutil.rmtree(host_folder / "ml", ignore_errors=True)


def upload_outputs(
    job: TrainingJob,
    trees: Sequence[HostTree],
    *,
    transfer: S3Transfer,
    job_folder: Path,
    logs: Mapping[str, Path],
    is_over: Callable[[], bool],
) -> None:
    """Ends the upload in progress, and begins no other, once the time is over."""

    def upload(path: Path, key: str) -> None:
        if not is_over():
            transfer.upload(path, f"{output_uri(job)}/{key}", is_over=is_over)

    if is_uncompressed(job):
        for tree in trees:
            for name, folder in (
                ("model", tree.root / "model"),
                ("data", tree.root / "output" / "data"),
            ):
                for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                    upload(path, f"output/{name}/{path.relative_to(folder).as_posix()}")
    else:
        for name, part in (("model", "model"), ("output", "output/data")):
            archive = job_folder / f"{name}.tar.gz"
            try:
                if pack_folders([tree.root / part for tree in trees], archive):
                    upload(archive, f"output/{name}.tar.gz")
            finally:
                archive.unlink(missing_ok=True)
    for host, log in logs.items():
        if log.is_file():
            upload(log, f"logs/{host}.log")


def find_step_logs(job: TrainingJob, tree: HostTree) -> Iterator[Path]:
    """Finds the step logs of the first process of each run, also of earlier starts."""
    variables = job.request.get("Environment", {})
    if is_shared(job):
        folder = tree.host_path(variables.get(FOLDER_VARIABLE, CONTAINER_FOLDER))
        return folder.glob(f"*/{STEP_LOG}/{job.name}/{FIRST_PROCESS}")
    return (tree.host_path(variables.get(DIRECTORY_VARIABLE, CONTAINER_DIRECTORY)) / job.name).glob(
        FIRST_PROCESS
    )


def count_steps(job: TrainingJob, tree: HostTree) -> int:
    """Steps of its run, or of all its runs, by the document that was downloaded."""
    if not is_shared(job):
        return read_work(job).steps
    document = json.loads(
        tree.host_path(job.request["Environment"][DOCUMENT_VARIABLE]).read_text(encoding="utf-8")
    )
    return sum(read_work(job_of_run(job, run)).steps for run in document["runs"])
