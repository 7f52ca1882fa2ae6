"""The folders through which a run's checkpoints rotate.

A run resumes from a folder that every process can read.

A new checkpoint replaces the oldest one in a folder of the same name. SageMaker copies files to S3
and is not documented to remove any there: reused names limit what is stored and what a restart
downloads.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import distributed
from torch.distributed import ProcessGroup

from traindyno.callbacks.checkpoints import (
    CheckpointRefused,
    LogSizes,
    check_log,
    describe_files,
    problem_of,
    read_marker,
    remove_marker,
    write_marker,
)
from traindyno.core.documents.plain import plain_values
from traindyno.core.run.processes import global_batch_size, replica_count
from traindyno.core.run.settings import Effect, settings_of_checkpoints, settings_with
from traindyno.core.run.workload import workload_document
from traindyno.core.suite.choices import InputMode, LearningRateSchedule, strategies_with
from training.process.process_group import Topology
from training.process.run_settings import RunSettings

Identity = Mapping[str, Any]
SAMPLES_PER_STEP = "samples_per_step"
PROCESSES = "processes"
STRATEGY = "strategy"
REPLICAS = "replicas"
BATCH_SIZE = "batch_size"
SCHEDULE = "pipeline_schedule"
COMPOSITIONS = frozenset(strategies_with(lambda traits: traits.is_composition))
KEPT = 2  # so many are complete while a further one is being written
SLOTS = KEPT + 1
STEP = "step"
IDENTITY = "identity"
SCALER = "scaler"


def identity_of(run: RunSettings, topology: Topology) -> Identity:
    """The processes, and how they share batches, are included only if others can't resume: of
    streamed data.
    """
    settings = plain_values(run.settings)
    workload = workload_document(run.workload)
    # Without a schedule, the first steps of a longer run equal those of a shorter one.
    if (
        run.settings.lr_schedule is LearningRateSchedule.CONSTANT
        and not 0 < run.settings.lr_warmup_steps < 1
    ):
        del workload["examples"]
    identity: dict[str, Any] = {
        **{f"workload.{name}": value for name, value in workload.items()},
        **{name: settings[name] for name in settings_of_checkpoints() if name in settings},
        SAMPLES_PER_STEP: global_batch_size(run.settings, topology.world_size),
    }
    if run.tokens is not None:
        identity["tokens"] = run.tokens.key
    dataset = run.workload.dataset
    if dataset is not None and dataset.input_mode is InputMode.STREAM:
        # Files are divided among the replicas and their workers: their number decides which process
        # reads which file.
        identity |= {
            **{name: settings[name] for name in settings_with(Effect.DEGREE) if name in settings},
            PROCESSES: topology.world_size,
            REPLICAS: replica_count(run.settings, topology.world_size),
            BATCH_SIZE: run.settings.batch_size,
            "loader_workers": run.settings.loader_workers,
        }
    read: Identity = json.loads(json.dumps(identity))  # as it comes back from a marker
    return read


def difference(saved: Identity, expected: Identity) -> str | None:
    """The first entries that differ, as text; None if all are equal."""
    free: set[str] = set()
    if {
        saved.get(STRATEGY),
        expected.get(STRATEGY),
    } <= COMPOSITIONS:  # a composition resumes as another one
        free = {SCHEDULE, STRATEGY, *settings_with(Effect.DEGREE)} | ({PROCESSES} - {*expected})
    names = sorted({*saved, *expected} - free)
    differing = [
        f"{name} {saved.get(name)!r}, where this run has {expected.get(name)!r}"
        for name in names
        if saved.get(name) != expected.get(name)
    ]
    return "; ".join(differing[:3]) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A checkpoint that every process can read.

    ``facts`` are the run's data besides its tensors.
    """

    slot: int
    step: int
    facts: dict[str, Any]


class Slots:
    """The folders of a run's checkpoints.

    Its processes agree on them by ``group``, which has all processes, on the CPU. It is None where
    there is only one process.
    """

    def __init__(self, folder: Path, topology: Topology, group: ProcessGroup | None) -> None:
        self._folder = folder
        self._topology = topology
        self._group = group
        self._next = 0

    def folder_of(self, slot: int) -> Path:
        return self._folder / f"slot-{slot}"

    def newest(self, identity: Identity) -> Found | None:
        """The newest checkpoint from which every process can resume, the same on each.

        The first process names the refused checkpoints on stderr, with the reason.
        """
        looked = self._gathered([self._look(slot, identity) for slot in range(SLOTS)])
        checkpoints: list[Found] = []
        for slot in range(SLOTS):
            problems = [rank[slot] for rank in looked if isinstance(rank[slot], str)]
            candidates = [rank[slot] for rank in looked if isinstance(rank[slot], Found)]
            if problems and self._topology.is_first:
                print(f"checkpoint refused: {problems[0]}", file=sys.stderr, flush=True)  # noqa: T201
            if len(candidates) == len(looked):
                checkpoints.append(candidates[0])
        newest = max(checkpoints, key=lambda checkpoint: checkpoint.step, default=None)
        if newest is not None:
            self._next = (newest.slot + 1) % SLOTS
        return newest

    def begin(self) -> Path:
        """The folder of the next checkpoint, emptied; it is refused until it is complete again."""
        folder = self.folder_of(self._next)
        self._next = (self._next + 1) % SLOTS
        if self._topology.local_rank == 0:
            folder.mkdir(parents=True, exist_ok=True)
            remove_marker(folder)
            for path in folder.iterdir():
                path.unlink()
        self._gathered(None)  # no process writes before its host's folder exists
        return folder

    def complete(
        self, folder: Path, own_files: list[str], facts: dict[str, Any], log: LogSizes
    ) -> int:
        """Writes the marker when every process has written its files.

        Args:
            folder: The folder of the checkpoint.
            own_files: The files that this process has written.
            facts: What the marker says of the checkpoint.
            log: The sizes of the log's files when the checkpoint's last step was in it. Each
                process knows the files of its host.

        Returns:
            The bytes of the files of this process.
        """
        described_here = describe_files(folder, own_files)
        gathered = self._gathered((described_here, log))
        files = {
            name: described for own_sizes, _ in gathered for name, described in own_sizes.items()
        }
        if self._topology.is_first:
            logs = [sizes for _, sizes in gathered]
            # The process that wrote a file last knows its whole size.
            largest = {
                name: max(sizes.get(name, 0) for sizes in logs) for name in set().union(*logs)
            }
            write_marker(folder, files, facts, largest)
        self._gathered(None)
        return sum(int(described["bytes"]) for described in described_here.values())

    def _look(self, slot: int, identity: Identity) -> Found | str | None:
        """Returns the checkpoint, why it is refused, or None for an empty slot.

        A host's processes share the files.
        """
        folder = self.folder_of(slot)
        if not folder.is_dir() or not any(folder.iterdir()):
            return None
        try:
            document = read_marker(folder)
            check_log(folder, document["log"])
        except CheckpointRefused as error:
            return str(error)
        facts = document["facts"]
        missing = {STEP, IDENTITY, SCALER} - set(facts)
        if missing:
            return f"{folder} has a marker without {', '.join(sorted(missing))}"
        other = difference(facts[IDENTITY], identity)
        if other is not None:
            return f"{folder} is of other settings: it has {other}"
        files = sorted(document["files"].items())[
            self._topology.local_rank :: self._topology.local_world_size
        ]
        for name, expected in files:
            problem = problem_of(folder / name, expected)
            if problem:
                return problem
        return Found(slot=slot, step=int(facts[STEP]), facts=facts)

    def _gathered(self, value: Any) -> list[Any]:
        """The value of every process, by rank."""
        if self._group is None:
            return [value]
        values: list[Any] = [None] * self._topology.world_size
        distributed.all_gather_object(values, value, group=self._group)
        return values
