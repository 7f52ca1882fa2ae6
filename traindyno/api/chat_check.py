"""Reads a suite's conversations before it starts, where they are on this machine: which one is
wrong, and how many are too long.
"""

import json
from pathlib import Path

from traindyno.api.local_data import is_small, local_data
from traindyno.api.local_paths import find_local
from traindyno.api.model_check import base_of
from traindyno.api.training_code import (
    cache_folder,
    has_training_code,
    keep,
    missing_libraries,
    read_kept,
    training_code_digest,
)
from traindyno.core.documents.plain import id_of
from traindyno.core.errors import Problem
from traindyno.core.run.data_formats import TOKENISED
from traindyno.core.run.saved_model import TOKENIZER_FILE
from traindyno.core.run.workload import Dataset, Workload, workload_document
from traindyno.core.suite.choices import DatasetFormat, Task
from traindyno.core.suite.suite import Suite


def find_chat_problems(suite: Suite, beside: Path) -> list[Problem]:
    """A dataset without problems is not read again."""
    return [
        Problem(path="workload.dataset", message=message) for message in _read(suite, beside)[1]
    ]


def chat_lines(suite: Suite, beside: Path) -> list[str]:
    """What ``plan`` and ``run`` say of the conversations on this machine."""
    return [f"data: {line}" for line in _read(suite, beside)[0]]


def _read(suite: Suite, beside: Path) -> tuple[list[str], list[str]]:
    """The lines about the conversations, and why a job would refuse them."""
    workload = suite.workload
    dataset = workload.dataset
    is_chat = dataset is not None and dataset.format is DatasetFormat.CHAT
    if workload.task is not Task.CAUSAL_LM or not is_chat or missing_libraries():
        return [], []
    assert dataset is not None
    if dataset.path is None or not has_training_code():
        return [], []
    with local_data(dataset.path, beside) as root:
        if root is None or not is_small(root) or (root / TOKENISED).exists():
            return [], []
        return _read_local(workload, dataset, root, beside)


def _read_local(
    workload: Workload, dataset: Dataset, root: Path, beside: Path
) -> tuple[list[str], list[str]]:
    folder = _tokenizer_folder(workload, beside)
    is_trained = workload.tokenizer is not None and workload.tokenizer.path is None
    template = find_local(dataset.chat_template, beside) if dataset.chat_template else None
    kept = cache_folder("chats") / _key(workload, root, folder, template)
    known = read_kept(kept)
    if known is not None:
        return json.loads(known), []
    from training.data.chat_survey import chat_survey  # noqa: PLC0415  (imports transformers, which takes seconds)
    from training.errors import WorkloadError  # noqa: PLC0415

    has_tokenizer = is_trained or (folder is not None and not workload.trust_remote_code)
    try:
        lines = list(
            chat_survey(
                workload,
                root,
                tokenizer_folder=folder,
                has_tokenizer=has_tokenizer,
                template=template,
            )
        )
    except WorkloadError as error:
        return [], [str(error)]
    keep(kept, json.dumps(lines))
    return lines, []


def _tokenizer_folder(workload: Workload, beside: Path) -> Path | None:
    """The folder of the tokenizer, if this machine has it; an adapter without one reads its
    base's.
    """
    named = workload.tokenizer or workload.model
    folder = find_local(named.path, beside) if named and named.path else None
    if folder is None or (folder / TOKENIZER_FILE).exists():
        return folder
    base = base_of(folder, beside, workload.channels)
    is_known = base == folder or (base is not None and (base / TOKENIZER_FILE).exists())
    return base if is_known else None


def _key(workload: Workload, *paths: Path | None) -> str:
    """64 hexadecimal digits of all inputs of the check, the checking code included."""
    known_paths = [path for path in paths if path is not None]
    files = [file for path in known_paths for file in (path, *path.rglob("*")) if file.is_file()]
    content = {
        "workload": workload_document(workload),
        "files": sorted(
            (str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files
        ),
        "code": training_code_digest(),
    }
    return id_of(content)
