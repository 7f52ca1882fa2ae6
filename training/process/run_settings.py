"""Reads the run or the preparation of this job from the hyperparameters that SageMaker passes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.step_log.line import ROWS, RUN, TOKENS, WORK_UNIT
from traindyno.core.suite.choices import Task
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.suite.preparation import DataPreparation
from traindyno.core.suite.processes import accumulation_steps, dividing_batches, global_batch_size
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Measurement, Tokens
from traindyno.core.suite.suite_file import parse_part, settings_document, suite_converter
from traindyno.core.suite.workload import Workload
from training.errors import WorkloadError
from training.process.process_group import Topology

HYPERPARAMETERS_VARIABLE = "SM_HPS"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """``tokens`` are already prepared; None if the run tokenises its own data.

    ``settings`` has the seed of the trial; ``split_seed`` is the cell's: all trials hold out the
    same sequences.
    """

    run_id: str
    workload: Workload
    settings: Settings
    measurement: Measurement
    tokens: Tokens | None = None
    target: QualityTarget | None = None
    split_seed: int = 0
    probes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationSettings:
    """A job that makes tokens for the runs of an execution, or copies their model."""

    preparation: DataPreparation
    workload: Workload


def read_preparation_settings(environment: Mapping[str, str]) -> PreparationSettings | None:
    """None if the job is a run."""
    document = json.loads(environment[HYPERPARAMETERS_VARIABLE])
    if "preparation" not in document:
        return None
    return PreparationSettings(
        preparation=parse_part(document["preparation"], DataPreparation),
        workload=parse_part(document["workload"], Workload),
    )


def read_run_settings(environment: Mapping[str, str]) -> RunSettings:
    document = json.loads(environment[HYPERPARAMETERS_VARIABLE])
    settings = parse_part(document["settings"], Settings)
    return RunSettings(
        run_id=str(document["run_id"]),
        workload=parse_part(document["workload"], Workload),
        settings=replace(settings, seed=int(document.get("trial_seed", settings.seed))),
        split_seed=settings.seed,
        measurement=parse_part(document["measurement"], Measurement),
        tokens=parse_part(document["tokens"], Tokens) if "tokens" in document else None,
        target=parse_part(document["target"], QualityTarget) if "target" in document else None,
        probes=bool(document.get("probes", False)),
    )


def with_accumulation(run: RunSettings, topology: Topology) -> RunSettings:
    """With the accumulation steps that its global batch size needs.

    Raises WorkloadError if they can't keep it.
    """
    settings = run.settings
    processes = topology.world_size
    steps = accumulation_steps(settings, processes)
    found = global_batch_size(settings, processes)
    if settings.global_batch_size not in (None, found):
        raise WorkloadError(
            f"batch_size_per_device {settings.batch_size} on {processes} processes does not divide "
            f"global_batch_size {settings.global_batch_size}: {steps} accumulation steps have "
            f"{found} samples; expected one of "
            f"{', '.join(map(str, dividing_batches(settings, processes) or ())) or 'other sizes'}"
        )
    return replace(run, settings=replace(settings, gradient_accumulation_steps=steps))


def run_facts(run: RunSettings) -> dict[str, Any]:
    """What the environment line contains about the run itself, and the unit of work of its task."""
    facts = {
        "run_id": run.run_id,
        "task": run.workload.task.value,
        "settings": settings_document(run.settings),
    }
    tokens = {"tokens": suite_converter().unstructure(run.tokens)} if run.tokens else {}
    unit = ROWS if run.workload.task is Task.SEQUENCE_CLASSIFICATION else TOKENS
    return {WORK_UNIT: unit, RUN: {**facts, **tokens}}
