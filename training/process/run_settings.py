"""Reads the run or the preparation of this job from the hyperparameters that SageMaker passes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.documents.plain import plain_values
from traindyno.core.run.processes import accumulation_steps, dividing_batches, global_batch_size
from traindyno.core.run.record import PreparationRecord, RunRecord, read_record
from traindyno.core.step_log.line import ROWS, RUN, TOKENS, WORK_UNIT
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.process.process_group import Topology

HYPERPARAMETERS_VARIABLE = "SM_HPS"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(RunRecord):
    """The run as it trains: ``settings`` has the seed of the trial; ``split_seed`` is the cell's:
    all trials hold out the same sequences.
    """

    split_seed: int = 0


def read_preparation(environment: Mapping[str, str]) -> PreparationRecord | None:
    """Reads what the job has to prepare; None if the job is a run."""
    document = json.loads(environment[HYPERPARAMETERS_VARIABLE])
    return read_record(document, PreparationRecord) if "preparation" in document else None


def read_run_settings(environment: Mapping[str, str]) -> RunSettings:
    run = read_record(json.loads(environment[HYPERPARAMETERS_VARIABLE]), RunSettings)
    seed = run.settings.seed
    trial_seed = seed if run.trial_seed is None else run.trial_seed
    return replace(run, settings=replace(run.settings, seed=trial_seed), split_seed=seed)


def with_accumulation(run: RunSettings, topology: Topology) -> RunSettings:
    """The run with the accumulation steps that its global batch size needs.

    Raises WorkloadError if no number of steps gives this batch size.
    """
    settings = run.settings
    processes = topology.world_size
    steps = accumulation_steps(settings, processes)
    samples = global_batch_size(settings, processes)
    if settings.global_batch_size not in (None, samples):
        raise WorkloadError(
            f"batch_size_per_device {settings.batch_size} on {processes} processes does not divide "
            f"global_batch_size {settings.global_batch_size}: {steps} accumulation steps have "
            f"{samples} samples; expected one of "
            f"{', '.join(map(str, dividing_batches(settings, processes) or ())) or 'other sizes'}"
        )
    return replace(run, settings=replace(settings, gradient_accumulation_steps=steps))


def run_facts(run: RunSettings) -> dict[str, Any]:
    """What the environment line contains about the run itself, and the unit of work of its task."""
    facts = {
        "run_id": run.run_id,
        "task": run.workload.task.value,
        "settings": plain_values(run.settings),
    }
    tokens = {"tokens": plain_values(run.tokens)} if run.tokens else {}
    unit = ROWS if run.workload.task is Task.SEQUENCE_CLASSIFICATION else TOKENS
    return {WORK_UNIT: unit, RUN: {**facts, **tokens}}
