"""The run that a checkpoint belongs to: a run with other settings can't continue from it."""

import json
from collections.abc import Mapping
from typing import Any

from traindyno.core.suite.choices import InputMode, strategies_with
from traindyno.core.suite.processes import global_batch_size, replica_count
from traindyno.core.suite.settings import Effect, settings_of_checkpoints, settings_with
from traindyno.core.suite.suite_file import settings_document, workload_document
from training.process.run_settings import RunSettings
from training.process.topology import Topology

Identity = Mapping[str, Any]
SAMPLES_PER_STEP, PROCESSES, STRATEGY = "samples_per_step", "processes", "strategy"
REPLICAS, BATCH_SIZE, SCHEDULE = "replicas", "batch_size", "pipeline_schedule"
COMPOSITIONS = frozenset(strategies_with(lambda traits: traits.is_composition))
# The first steps of a longer run equal those of a shorter one.
MAY_DIFFER = ("examples",)


def identity_of(run: RunSettings, topology: Topology) -> Identity:
    """The processes, and how they share batches, are included only if others can't resume: of streamed data."""
    settings, workload = settings_document(run.settings), workload_document(run.workload)
    identity: dict[str, Any] = {
        **{f"workload.{name}": value for name, value in workload.items() if name not in MAY_DIFFER},
        **{name: settings[name] for name in settings_of_checkpoints() if name in settings},
        SAMPLES_PER_STEP: global_batch_size(run.settings, topology.world_size),
    }
    if run.tokens is not None:
        identity["tokens"] = run.tokens.key
    if _is_streamed(run):
        identity |= {
            **{name: settings[name] for name in settings_with(Effect.DEGREE) if name in settings},
            PROCESSES: topology.world_size,
            REPLICAS: replica_count(run.settings, topology.world_size),
            BATCH_SIZE: run.settings.batch_size,
            "loader_workers": run.settings.loader_workers,
        }
    plain: Identity = json.loads(json.dumps(identity))  # as it comes back from a marker
    return plain


def difference(found: Identity, expected: Identity) -> str | None:
    """The first entries that differ, as text; None if all are equal."""
    free: set[str] = set()
    if {found.get(STRATEGY), expected.get(STRATEGY)} <= COMPOSITIONS:  # a composition resumes as another one
        free = {SCHEDULE, STRATEGY, *settings_with(Effect.DEGREE)} | ({PROCESSES} - {*expected})
    names = sorted({*found, *expected} - free)
    differing = [
        f"{name} {found.get(name)!r}, where this run has {expected.get(name)!r}"
        for name in names
        if found.get(name) != expected.get(name)
    ]
    return "; ".join(differing[:3]) or None


def _is_streamed(run: RunSettings) -> bool:
    """Files are divided among the replicas and their workers, so their number determines which process reads which
    file.
    """
    return run.workload.dataset is not None and run.workload.dataset.input_mode is InputMode.STREAM
