"""The run that a checkpoint belongs to: a run with other settings can't continue from it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.processes import global_batch_size
from traindyno.core.suite.settings import Effect, has_effect, settings_of_checkpoints, settings_with
from traindyno.core.suite.strategies import TRAITS
from traindyno.core.suite.suite_file import settings_document, workload_document
from training.process.run_settings import RunSettings
from training.process.topology import Topology

Identity = Mapping[str, Any]
SAMPLES_PER_STEP, PROCESSES = "samples_per_step", "processes"
# The first steps of a longer run equal those of a shorter one.
MAY_DIFFER = ("examples",)


def identity_of(run: RunSettings, topology: Topology) -> Identity:
    """``processes`` is included only if another number of processes can't resume."""
    settings, workload = settings_document(run.settings), workload_document(run.workload)
    identity: dict[str, Any] = {
        **{f"workload.{name}": value for name, value in workload.items() if name not in MAY_DIFFER},
        **{name: settings[name] for name in _fixed_settings(run) if name in settings},
        SAMPLES_PER_STEP: global_batch_size(run.settings, topology.world_size),
    }
    if run.tokens is not None:
        identity["tokens"] = run.tokens.key
    if not TRAITS[run.settings.strategy].resumes_resharded or _is_streamed(run):
        identity[PROCESSES] = topology.world_size
    if _is_streamed(run):
        identity["loader_workers"] = run.settings.loader_workers
    plain: Identity = json.loads(json.dumps(identity))  # as it comes back from a marker
    return plain


def _fixed_settings(run: RunSettings) -> Iterator[str]:
    """A checkpoint with whole names doesn't fix how the processes were divided."""
    names = set(settings_of_checkpoints())
    if TRAITS[run.settings.strategy].resumes_resharded:
        names -= {name for name in settings_with(Effect.DEGREE) if has_effect(name, run.settings)}
    return iter(sorted(names))


def difference(found: Identity, expected: Identity) -> str | None:
    """The first entries that differ, as text; None if all are equal."""
    names = sorted({*found, *expected})
    differing = [
        f"{name} {found.get(name)!r}, where this run has {expected.get(name)!r}"
        for name in names
        if found.get(name) != expected.get(name)
    ]
    return "; ".join(differing[:3]) or None


def _is_streamed(run: RunSettings) -> bool:
    """Files are divided among the processes and their workers, so their number determines which process reads which
    file.
    """
    return run.workload.dataset is not None and run.workload.dataset.input_mode is InputMode.STREAM
