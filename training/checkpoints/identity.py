"""The run that a checkpoint belongs to: a run with other settings can't continue from it."""

import json
from collections.abc import Mapping
from typing import Any

from traindyno.core.suite.choices import InputMode, Strategy
from traindyno.core.suite.processes import global_batch_size
from traindyno.core.suite.settings import Effect, settings_of_checkpoints, settings_with
from traindyno.core.suite.strategies import TRAITS
from traindyno.core.suite.suite_file import settings_document, workload_document
from training.process.run_settings import RunSettings
from training.process.topology import Topology

Identity = Mapping[str, Any]
SAMPLES_PER_STEP, PROCESSES, STRATEGY = "samples_per_step", "processes", "strategy"
# The first steps of a longer run equal those of a shorter one.
MAY_DIFFER = ("examples",)


def identity_of(run: RunSettings, topology: Topology) -> Identity:
    """``processes`` is included only if another number of processes can't resume: of streamed data."""
    settings, workload = settings_document(run.settings), workload_document(run.workload)
    identity: dict[str, Any] = {
        **{f"workload.{name}": value for name, value in workload.items() if name not in MAY_DIFFER},
        **{name: settings[name] for name in settings_of_checkpoints() if name in settings},
        SAMPLES_PER_STEP: global_batch_size(run.settings, topology.world_size),
    }
    if run.tokens is not None:
        identity["tokens"] = run.tokens.key
    if _is_streamed(run):
        identity[PROCESSES] = topology.world_size
        identity["loader_workers"] = run.settings.loader_workers
    plain: Identity = json.loads(json.dumps(identity))  # as it comes back from a marker
    return plain


def difference(found: Identity, expected: Identity) -> str | None:
    """The first entries that differ, as text; None if all are equal."""
    names = sorted({*found, *expected} - _left_free(found, expected))
    differing = [
        f"{name} {found.get(name)!r}, where this run has {expected.get(name)!r}"
        for name in names
        if found.get(name) != expected.get(name)
    ]
    return "; ".join(differing[:3]) or None


def _left_free(found: Identity, expected: Identity) -> set[str]:
    """A composition resumes as another one. Earlier versions named degrees, schedule and processes of some."""
    if not _is_composition(found) or not _is_composition(expected):
        return set()
    return {STRATEGY, *settings_with(Effect.DEGREE), "pipeline_schedule", *({PROCESSES} - {*expected})}


def _is_composition(identity: Identity) -> bool:
    return TRAITS[Strategy(identity[STRATEGY])].is_composition


def _is_streamed(run: RunSettings) -> bool:
    """Files are divided among the processes and their workers, so their number determines which process reads which
    file.
    """
    return run.workload.dataset is not None and run.workload.dataset.input_mode is InputMode.STREAM
