"""Each cell's estimated memory, kept by content; a process with the training libraries makes it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import monotonic
from typing import IO, Any

from traindyno.api.local_paths import find_local
from traindyno.api.model_check import base_of, find_configuration, read_configuration
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
from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.stored import from_document
from traindyno.core.errors import TraindynoError
from traindyno.core.planning.memory import (
    CellMemory,
    MemoryFinding,
    device_memory_bytes,
    finding_of,
    memory_of_cells,
)
from traindyno.core.planning.model_shape import ModelShape
from traindyno.core.planning.peak_lines import (
    MemoryEstimate,
    PeakLines,
    division_of,
    estimate_key,
    has_own_events,
    settings_of_lines,
    with_vocabulary,
)
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload, workload_document
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite

MODULE = "training.memory"
FORM = 2  # of the estimates in the cache
LATER = "not estimated in the time that was left"

Say = Callable[[str], None]


class EstimatesUnavailable(TraindynoError):
    """A package or the model's configuration is not on this machine."""


class MemoryEstimator:
    """The memory of one workload's configurations.

    Its process starts with the first that was not kept. ``say`` gets a line for each that takes
    time, and after ``until``, a time of ``monotonic``, none is begun or ended.

    Raises EstimatesUnavailable.
    """

    def __init__(self, workload: Workload, *, beside: Path, say: Say) -> None:
        if workload.task is not Task.SCRIPT:
            _check_installed()
        self._workload = with_configuration(workload, beside)
        self._code = f"{training_code_digest()} {FORM}"
        self._say = say
        self.until = inf
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] = TemporaryFile("w+")  # noqa: SIM115
        self._answers: dict[Path, dict[str, Any]] = {}
        self._lines: dict[Settings, tuple[PeakLines | None, str | None]] = {}

    def __enter__(self) -> "MemoryEstimator":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._errors.close()

    def find(self, settings: Settings) -> MemoryFinding:
        processes = world_size(settings)
        if processes is None or device_memory_bytes(settings.instance) is None:
            return MemoryFinding(
                why_unknown=f"the memory of a device of {settings.instance} is unknown"
            )
        shared = settings_of_lines(settings, processes)
        if shared not in self._lines:
            self._lines[shared] = self._find("lines", shared, processes)
        lines, why_none = self._lines[shared]
        whole = None
        if not why_none and (lines is None or has_own_events(self._workload, settings)):
            of_batch = replace(shared, batch_size_per_device=settings.batch_size)
            whole, why_none = self._find("whole", of_batch, processes)
        if why_none:
            return MemoryFinding(why_unknown=why_none)
        return finding_of(settings, lines=lines, whole=whole)

    def shape(self) -> ModelShape | None:
        """Shape of the model; None where its FLOPs or layers can't be counted."""
        document = self._answer({"find": "shape"}, {}, "counting the model's FLOPs").get("shape")
        return from_document(document, ModelShape) if document else None

    def _find(self, name: str, settings: Settings, processes: int) -> tuple[Any, str | None]:
        """The estimate, which is None where the steps are no lines, and why it is unknown."""
        answer = self._answer(
            {"find": name, "settings": plain_values(settings)},
            division_of(settings, processes),
            f"estimating memory: {_label(settings, processes)}",
        )
        kind = PeakLines if name == "lines" else MemoryEstimate
        document = answer.get(name)
        return document and from_document(document, kind), answer.get("why_unknown")

    def _answer(
        self, request: dict[str, Any], determining: dict[str, Any], label: str
    ) -> dict[str, Any]:
        find = request["find"]
        code = self._code
        key = estimate_key(self._workload, find=find, code=code, **determining)
        path = cache_folder("memory") / f"{key}.json"
        if path not in self._answers and (text := read_kept(path)) is not None:
            self._answers[path] = json.loads(text)
        if path not in self._answers:
            if monotonic() >= self.until:
                return {"why_unknown": LATER}
            self._say(label)
            self._answers[path] = self._ask(request)
            if "why_unknown" not in self._answers[path]:
                keep(path, json.dumps(self._answers[path]))
        return self._answers[path]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        end = Timer(min(self.until - monotonic(), 1e6), process.kill)
        end.start()
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        finally:
            end.cancel()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if monotonic() >= self.until:
            return {"why_unknown": LATER}
        status = process.wait()
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-1:] or ["it printed nothing"]
        return {"why_unknown": f"the estimate ended with status {status}: {last[0]}"}

    def _start(self) -> "subprocess.Popen[str]":
        path = os.pathsep.join(
            filter(None, (str(training_folder().parent), os.environ.get("PYTHONPATH")))
        )
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(workload_document(self._workload)) + "\n")
        return process


def estimate_cells(suite: Suite, *, beside: Path, say: Say) -> tuple[CellMemory, ...]:
    """Raises EstimatesUnavailable."""
    cells = suite.cells
    with MemoryEstimator(suite.workload, beside=beside, say=say) as estimator:
        return memory_of_cells(cells, estimator.find)


def first_batches(suite: Suite, *, beside: Path) -> dict[str, int]:
    """The largest batch that fits by estimates that were kept, for each cell that searches it
    from 1.
    """
    searches = [
        cell
        for cell in suite.cells
        if cell.settings.batch_search and cell.settings.batch_search.begin == 1
    ]
    if not searches:
        return {}
    try:
        with MemoryEstimator(suite.workload, beside=beside, say=lambda _: None) as estimator:
            estimator.until = 0
            memory = memory_of_cells(searches, estimator.find)
    except EstimatesUnavailable:
        return {}
    batches = {cell_memory.cell_id: cell_memory.finding.largest_batch for cell_memory in memory}
    return {cell_id: batch for cell_id, batch in batches.items() if batch}


def _label(settings: Settings, processes: int) -> str:
    names = [f"strategy {settings.strategy}", settings.precision.value]
    if settings.activation_checkpointing:
        names.append("activation_checkpointing")
    return f"{', '.join(names)}, {processes} device{'s' * (processes > 1)}"


def _check_installed() -> None:
    missing = missing_libraries()
    if missing:
        raise EstimatesUnavailable(
            f"the model is built with {' and '.join(LIBRARIES)}, and this environment has no "
            f"{' and no '.join(missing)}: install them with pip install 'traindyno[train]'"
        )
    if not has_training_code():
        raise EstimatesUnavailable(
            "the container's own training code is not installed here: run it in a checkout of "
            "Traindyno"
        )


def with_configuration(workload: Workload, beside: Path) -> Workload:
    """The workload with the content of its model's configuration in place of the path."""
    model = workload.model
    if workload.task is Task.SCRIPT:
        raise EstimatesUnavailable("a script's model is known only while it runs")
    if model is None or model.path is None:
        return with_vocabulary(workload)
    local = find_local(model.path, beside)
    folder: str | Path | None
    if local is None:
        folder = find_configuration(model.path, model.revision, None)
    else:
        folder = base_of(local, beside, workload.channels)
    config = read_configuration(Path(folder)) if folder else {}
    if "model_type" not in config:
        raise EstimatesUnavailable(
            f"the configuration of {model.path} is not on this machine: expected a folder with a "
            "config.json, a config in the suite, or a Hub id whose config.json was fetched"
        )
    model = replace(model, path=None, revision=None, config=config)
    return replace(workload, model=model, tokenizer=None)
