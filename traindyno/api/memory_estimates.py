"""Each cell's estimated memory, computed in a separate process and cached by content."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from traindyno.api.local_paths import find_local
from traindyno.api.training_code import (
    LIBRARIES,
    cache_folder,
    has_training_code,
    keep,
    missing_libraries,
    read_kept,
    training_code_digest,
    training_folder,
)
from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.planning.memory import (
    CellMemory,
    MemoryFinding,
    distinct_settings,
    memory_key,
    memory_of_cells,
)
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.saved_model import MODEL_FILE
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import settings_document, workload_document
from traindyno.core.suite.workload import Workload

MODULE = "training.memory"
FORM = 1  # of the estimates in the cache

Say = Callable[[str], None]


class EstimatesUnavailable(TraindynoError):
    """A package that estimates need is not installed, or the estimating process failed."""


def estimate_cells(suite: Suite, *, beside: Path, say: Say) -> tuple[CellMemory, ...]:
    """Raises EstimatesUnavailable.

    ``say`` gets a line if an estimate is not in the cache and takes time.
    """
    cells = expand_cells(suite)
    return memory_of_cells(cells, _findings(suite.workload, distinct_settings(cells), beside, say))


def _findings(
    workload: Workload, settings: Iterable[Settings], beside: Path, say: Say
) -> Mapping[Settings, MemoryFinding]:
    _check_installed()
    model_path, model_content = _find_model(workload, beside)
    code = f"{training_code_digest()} {model_content} {FORM}"
    wanted = {
        each: cache_folder("memory") / f"{memory_key(workload, each, code=code)}.json"
        for each in settings
    }
    kept = {each: read_kept(path) for each, path in wanted.items()}
    findings = {
        each: from_document(json.loads(text), MemoryFinding)
        for each, text in kept.items()
        if text is not None
    }
    missing = [each for each in wanted if each not in findings]
    if missing:
        count = "1 configuration" if len(missing) == 1 else f"{len(missing)} configurations"
        say(f"estimating the memory of {count}; a large model takes about a minute each, once")
        for each, finding in _find(workload, missing, model_path):
            keep(wanted[each], json.dumps(to_document(finding)))
            findings[each] = finding
    return findings


def _check_installed() -> None:
    missing = missing_libraries()
    if missing:
        raise EstimatesUnavailable(
            f"--memory builds the model with {' and '.join(LIBRARIES)}, and this environment has no"
            f" {' and no '.join(missing)}: install them with pip install 'traindyno[train]'"
        )
    if not has_training_code():
        raise EstimatesUnavailable(
            "--memory runs the container's own training code, which is not installed here: run it "
            "in a checkout of Traindyno"
        )


def _find_model(workload: Workload, beside: Path) -> tuple[str | None, str]:
    """The path that transformers can load, and an identifier of its configuration."""
    if workload.model is None or workload.model.path is None:
        return None, ""
    path = workload.model.path
    if is_s3_uri(path):
        raise EstimatesUnavailable(
            f"--memory can't read the model's configuration from {path}: expected a Hub id, a "
            "local folder or a config in the suite"
        )
    local = find_local(path, beside)
    if local is None:
        return path, ""
    return str(local), hashlib.sha256((local / MODEL_FILE).read_bytes()).hexdigest()


def _find(
    workload: Workload, settings: Sequence[Settings], model_path: str | None
) -> Iterator[tuple[Settings, MemoryFinding]]:
    request = {
        "workload": workload_document(workload),
        "model_path": model_path,
        "settings": [settings_document(each) for each in settings],
    }
    path = os.pathsep.join(
        filter(None, (str(training_folder().parent), os.environ.get("PYTHONPATH")))
    )
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    )
    output, errors = process.communicate(json.dumps(request))
    lines = output.splitlines()
    if process.returncode or len(lines) != len(settings):
        last = errors.strip().splitlines()[-1:] or ["it printed nothing"]
        raise EstimatesUnavailable(
            f"estimating the memory ended with status {process.returncode} after {len(lines)} of "
            f"{len(settings)} configurations: {last[0]}"
        )
    for each, line in zip(settings, lines, strict=True):
        yield each, from_document(json.loads(line), MemoryFinding)
