"""The lines of a step log: what a container writes and the analysis reads.

Runs on Python 3.8 (frozen images).

A step log is JSON lines, one file per process: ``<directory>/<job name>/rank-00003.<start>.jsonl``
where ``start`` is the process's start in epoch milliseconds (a spot interruption gives a rank a
second file). Every line has ``kind`` and ``time``. All times are epoch seconds of one monotonic
clock per process: the wall clock is read once, at its start. A number that is not finite is written
as text: ``"nan"``, ``"inf"`` or ``"-inf"``, because JSON has no such numbers.

``SCHEMA_VERSION`` rises if a field changes its meaning, or with a new kind of line.
"""

import math
from typing import Any, Dict, NamedTuple, Optional, Union

SCHEMA_VERSION = 1
DIRECTORY_VARIABLE = "TRAINDYNO_STEP_LOG_DIRECTORY"
CONTAINER_DIRECTORY = "/opt/ml/checkpoints/step_log"
# The folder of a run's checkpoints; absent if it keeps none
CHECKPOINTS_VARIABLE = "TRAINDYNO_CHECKPOINT_DIRECTORY"
CONTAINER_CHECKPOINTS = "/opt/ml/checkpoints/state"
# Which start of the job this is, the same for all its processes; only a local cloud says it
LAUNCH_VARIABLE = "TRAINDYNO_LAUNCH"
# In a job of several runs: an object with the run's ``place`` among those that began since the
# job's start, from 1, and whether its processes were ``forked`` from one that had done the imports.
# The environment's fact has the same.
SHARED_JOB_VARIABLE = "TRAINDYNO_SHARED_JOB"
SHARED_JOB = "shared_job"
PLACE = "place"
FORKED = "forked"
# By how much single runs scatter on this machine, as a share of their time, where it was measured;
# the environment's fact has the same text
SCATTER_VARIABLE = "TRAINDYNO_RUN_SCATTER"
SCATTER = "run_scatter"
# The seed of the trial, for a user's script, and the fact of the environment that says that the
# script took it
SEED_VARIABLE = "TRAINDYNO_SEED"
SEED = "seed"
# Names of phases.
CHECKPOINT = "checkpoint"
CHECKPOINT_WRITE = "checkpoint_write"
RESTORE = "restore"
COMPILE = "compile"  # a phase outside the steps, or inside one
# until the first step; its facts are conditions that a script's step log learns by then
SETUP = "setup"
# A phase from the end of a process's training to the first step of the next one
PAUSE = "between_trainings"
# A phase from the first step of a training that ran out of memory to that of the next try with a
# smaller batch. Its facts: a text such as "32 became 8", and the last step whose work counts.
BATCH_SEARCH = "batch_search"
KEPT_STEPS = "kept_steps"
# A phase after the run's own work, in logs of earlier code
PROBE = "probe"
# A phase without length: how often, until then, the process's CUDA allocator freed its cache
# because memory was short
ALLOCATOR_RETRIES = "allocator_retries"
RETRIES = "retries"
# What the process did between its steps until then, except in phases: steps of an optimizer that
# were not logged, CPU seconds of the thread that trains, and the wait for data in which they are.
# These are facts of the last phase, and of a phase without length as soon as steps are missing.
BETWEEN_STEPS = "between_steps"
UNLOGGED_STEPS = "unlogged_steps"
CPU_SECONDS = "cpu_seconds"
WAIT_SECONDS = "wait_seconds"
# A phase without length: of the first batches of one of several processes, checksums and the values
# of each row
FIRST_BATCHES = "first_batches"
CHECKSUMS = "checksums"
ROW_VALUES = "values_per_row"
IN_BACKGROUND = (
    "in_background"  # a phase's fact: steps continued during it, so it takes none of their time
)
# The environment's fact for the unit of work: the same in every cell of a task, with any packing
WORK_UNIT = "work_unit"
TOKENS = "tokens"  # without padding
ROWS = "rows"
SAMPLES = "samples"
# The fact of a built-in task: what its run is
RUN = "run"
FAILURE_PREFIX = "traindyno-outcome"
# Why a process ended itself before its last step
TARGET_REACHED = "target_reached"
RATE_KNOWN = "rate_known"


def environment_line(
    time: float,
    rank: int,
    world_size: int,
    host: str,
    facts: Dict[str, Any],
    *,
    host_id: Optional[str] = None,
    launch: Optional[str] = None,
) -> Dict[str, Any]:
    """First line.

    ``facts`` holds versions, device, driver, topology, strategy: the conditions of the measurement.

    ``host`` is a name within the job (``algo-1``); ``host_id`` names the machine, and ``launch``
    the start of the job: both are null if unknown.
    """
    return {
        "kind": "environment",
        "schema_version": SCHEMA_VERSION,
        "time": time,
        "rank": rank,
        "world_size": world_size,
        "host": host,
        "host_id": host_id,
        "launch": launch,
        "facts": facts,
    }


def phase_line(
    name: str, begin: float, end: float, facts: Optional[Dict[str, Any]] = None
) -> Dict[str, Any]:
    """A time span outside the steps, or a compilation inside one.

    The log writes ``launch`` (its launchers, until it starts), ``import`` (until the log exists),
    ``setup`` (from the last phase to the first step) and ``teardown`` (from the last step or phase
    to the end line) by itself. The script names the others: load, compile, evaluate, save,
    checkpoint, restore, or its own. Warm-up and steady state are found later. A checkpoint's facts
    have its ``step`` and, if known, its ``bytes``; the setup's join the environment's.
    """
    return {
        "kind": "phase",
        "time": end,
        "name": name,
        "begin": begin,
        "end": end,
        "facts": facts or {},
    }


class LoggedStep(NamedTuple):
    """One optimizer step of one process.

    ``begin`` is before the wait for data, so ``end - begin`` includes it.

    ``samples`` and ``tokens`` are this process's own share, so that the sum over processes is the
    work done: processes that hold parts of one model replica (tensor, pipeline) split or attribute
    the replica's work among themselves.
    """

    # A tuple, because a run has millions of steps to parse
    step: int
    begin: float
    end: float
    wait_seconds: float
    samples: int
    tokens: Optional[int] = None
    loss: Optional[float] = None
    peak_memory_bytes: Optional[int] = None


def step_line(*, learning_rate: Optional[float] = None, **fields: Any) -> Dict[str, Any]:
    """Line of a step. ``fields`` are fields of LoggedStep."""
    step = LoggedStep(**fields)
    line = {"kind": "step", "time": step.end, **step._asdict(), "learning_rate": learning_rate}
    return {**line, "loss": json_number(step.loss)}


def model_line(
    time: float,
    parameters: int,
    flops_per_token: Optional[float],
    formula: Optional[str],
    trained: Optional[int] = None,
) -> Dict[str, Any]:
    """Model size, and training FLOPs (forward and backward) for one token with the formula that
    gave them.

    ``trained``: how many parameters are trained, where the others are frozen.
    """
    return {
        "kind": "model",
        "time": time,
        "parameters": parameters,
        "flops_per_token": flops_per_token,
        "formula": formula,
        "trained": trained,
    }


def evaluation_line(time: float, step: int, metrics: Dict[str, float]) -> Dict[str, Any]:
    """Line of an evaluation.

    ``metrics`` are loss, accuracy, perplexity, or the user's own names.
    """
    numbers = {name: json_number(value) for name, value in metrics.items()}
    return {"kind": "evaluation", "time": time, "step": step, "metrics": numbers}


def host_load_line(*, end: float, **load: float) -> Dict[str, Any]:
    """The load of the process and its host from ``begin`` to ``end`` on ``host_cpu_count`` cores;
    only on Linux, about every 5 s.

    ``cpu_seconds``: CPU time of the process and its children. ``run_queue_seconds``: for how long
    its threads were ready to run and had no core, summed over threads. ``host_busy_seconds``: CPU
    time of all processes of the host. ``steal_seconds``: CPU time that the hypervisor gave to
    others.
    """
    return {"kind": "host_load", "time": end, "end": end, **load}


def error_line(time: float, outcome: str, message: str) -> Dict[str, Any]:
    """Line of an error.

    ``outcome`` is a value of traindyno.core.jobs.outcome.Outcome.
    """
    return {"kind": "error", "time": time, "outcome": outcome, "message": message}


def end_line(time: float, steps: int, reason: Optional[str] = None) -> Dict[str, Any]:
    """Last line of a process that ended by itself; a log without it is truncated.

    ``reason``: why it ended before its last step, ``target_reached`` or ``rate_known``; absent if
    it did all steps.
    """
    line: Dict[str, Any] = {"kind": "end", "time": time, "steps": steps}
    return line if reason is None else {**line, "reason": reason}


def json_number(value: Optional[float]) -> Union[float, str, None]:
    return value if value is None or math.isfinite(value) else str(float(value))


def failure_text(outcome: str, message: str) -> str:
    """The text that a container writes to /opt/ml/output/failure, and SageMaker puts into the job's
    FailureReason.
    """
    return "{}: {}: {}".format(FAILURE_PREFIX, outcome, message)
