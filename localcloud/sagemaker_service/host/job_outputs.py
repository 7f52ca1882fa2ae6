"""Uploads what a job leaves: its model, its other outputs, and its logs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from localcloud.sagemaker_service.host.container_tree import HostTree
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_view import is_uncompressed, output_uri
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer, pack_folders


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
        _upload_files(trees, upload)
    else:
        _upload_archives(trees, job_folder, upload)
    for host, log in logs.items():
        if log.is_file():
            upload(log, f"logs/{host}.log")


def _upload_files(trees: Sequence[HostTree], upload: Callable[[Path, str], None]) -> None:
    for tree in trees:
        for name, folder in (("model", tree.model), ("data", tree.output / "data")):
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                upload(path, f"output/{name}/{path.relative_to(folder).as_posix()}")


def _upload_archives(trees: Sequence[HostTree], job_folder: Path, upload: Callable[[Path, str], None]) -> None:
    artifacts = {"model": [tree.model for tree in trees], "output": [tree.output / "data" for tree in trees]}
    for name, folders in artifacts.items():
        archive = job_folder / f"{name}.tar.gz"
        try:
            if pack_folders(folders, archive):
                upload(archive, f"output/{name}.tar.gz")
        finally:
            archive.unlink(missing_ok=True)
