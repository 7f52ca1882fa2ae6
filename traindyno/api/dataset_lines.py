"""Which of a local dataset's files each split reads; a set of which only a part would be read is refused."""

from collections.abc import Collection, Iterator
from pathlib import Path

from traindyno.api.local_paths import find_local
from traindyno.core.suite.choices import Task
from traindyno.core.suite.data_formats import DatasetFilesInvalid, is_documentation, is_hidden, split_files
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.workload import Dataset
from traindyno.travelling_files import Reason, Travelling, travelling_data

SHOWN_FILES = 6
# The folder holds tokens, and a run reads these.
TOKENISED = "train/traindyno-data.json"
MISSED = (Reason.LINK, Reason.UNREADABLE)


def data_lines(suite: Suite, *, beside: Path, allowed: Collection[Path] = ()) -> list[str]:
    """What `plan` and `run` say of a dataset's files.

    There are no lines for a dataset that is not on this machine, and for a script's, which reads its files itself.
    Raises DatasetFilesInvalid for files that no run could read, and for files of the set that would be missing.
    """
    dataset = suite.workload.dataset
    if dataset is None or dataset.path is None or suite.workload.task is Task.SCRIPT:
        return []
    local = find_local(dataset.path, beside)
    if local is None:
        return []
    found = travelling_data(local, allowed=allowed)
    if TOKENISED in found.files:
        return [f"data: {dataset.path} is tokenised already"]
    try:
        _refuse_missed(found)
        lines = list(_split_lines(dataset, list(found.files)))
    except DatasetFilesInvalid as error:
        raise DatasetFilesInvalid(f"workload.dataset.path: {dataset.path}: {error}") from error
    if suite.job_measurement.evaluates and dataset.evaluation_split is None:
        lines.insert(1, "data: evaluation reads a random part of the training sequences, which is then not trained on")
    return lines


def _refuse_missed(found: Travelling) -> None:
    missed = [name for name, reason in found.left_out.items() if reason in MISSED and not _is_beside(name)]
    if missed:
        raise DatasetFilesInvalid(
            f"a part of the data would be missing: {_listed(missed)} (links, which are not followed, or unreadable); "
            f"only {_listed(list(found.files)) or 'nothing'} would be read; put the files in their place, or "
            "remove them; a link to a file can also be named with --also-send"
        )


def _is_beside(name: str) -> bool:
    return is_hidden(name) or is_documentation(name)


def _split_lines(dataset: Dataset, names: list[str]) -> Iterator[str]:
    used: set[str] = set()
    for split in filter(None, {dataset.split: None, dataset.evaluation_split: None}):
        files = split_files(names, dataset, split)
        used.update(files)
        yield f"data: split {split} reads {_listed(files)}"
    if unused := [name for name in names if name not in used]:
        yield f"data: not read: {_listed(unused)}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return ", ".join(names[:SHOWN_FILES]) + more
