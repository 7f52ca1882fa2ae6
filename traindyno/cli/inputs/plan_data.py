"""Which of a local dataset's files each split reads, as lines of a plan."""

from collections.abc import Iterator
from pathlib import Path

from traindyno.core.suite.choices import Task
from traindyno.core.suite.dataset_files import split_files
from traindyno.core.suite.suite import Suite

SHOWN_FILES = 6


def data_lines(suite: Suite, *, beside: Path) -> Iterator[str]:
    """Nothing for a dataset that is not on this machine, and for a script's, which reads its files itself.

    Raises DatasetFilesInvalid for files that no run could read.
    """
    dataset = suite.workload.dataset
    if dataset is None or dataset.path is None or suite.workload.task is Task.SCRIPT:
        return
    local = beside / Path(dataset.path).expanduser()
    if not local.exists():
        return
    names = [local.name] if local.is_file() else _names(local)
    splits = {dataset.split: None, dataset.evaluation_split: None}
    used: set[str] = set()
    for split in filter(None, splits):
        files = split_files(names, dataset, split)
        used.update(files)
        yield f"data: split {split} reads {_listed(files)}"
    if suite.measurement.evaluates and dataset.evaluation_split is None:
        yield "data: evaluation reads a random part of the training sequences, which is then not trained on"
    if unused := [name for name in names if name not in used]:
        yield f"data: not read: {_listed(unused)}"


def _names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return ", ".join(names[:SHOWN_FILES]) + more
