"""The lines of a step log: what a container writes and the analysis reads. Runs on Python 3.8 (frozen images).

A step log is JSON lines, one file per process: ``<directory>/<job name>/rank-00003.<start>.jsonl`` where ``start`` is
the process's start in epoch milliseconds (a spot interruption gives a rank a second file). Every line has ``kind``
and ``time``. All times are epoch seconds of one clock per process that never steps backwards.
"""

from typing import Any, Dict, Optional

SCHEMA_VERSION = 1
DIRECTORY_VARIABLE = "TRAINDYNO_STEP_LOG_DIRECTORY"
CONTAINER_DIRECTORY = "/opt/ml/checkpoints/step_log"
FAILURE_PREFIX = "traindyno-outcome"


def environment_line(time: float, rank: int, world_size: int, host: str, facts: Dict[str, Any]) -> Dict[str, Any]:
    """First line. ``facts`` holds versions, device, driver, topology, strategy: what makes the rest trustworthy."""
    return {
        "kind": "environment",
        "schema_version": SCHEMA_VERSION,
        "time": time,
        "rank": rank,
        "world_size": world_size,
        "host": host,
        "facts": facts,
    }


def phase_line(name: str, begin: float, end: float, facts: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """``name``: load, compile, evaluate, save, or another that the writer names. Warm-up and steady are found later."""
    return {"kind": "phase", "time": end, "name": name, "begin": begin, "end": end, "facts": facts or {}}


def step_line(
    *,
    step: int,
    begin: float,
    end: float,
    wait_seconds: float,
    samples: int,
    tokens: Optional[int] = None,
    loss: Optional[float] = None,
    learning_rate: Optional[float] = None,
    peak_memory_bytes: Optional[int] = None,
) -> Dict[str, Any]:
    """One optimizer step of one process. ``begin`` is before the wait for data, so ``end - begin`` includes it.

    ``samples`` and ``tokens`` are this process's own share, so that the sum over processes is the work done: processes
    that hold parts of one model replica (tensor, pipeline) split or attribute the replica's work among themselves.
    """
    return {
        "kind": "step",
        "time": end,
        "step": step,
        "begin": begin,
        "end": end,
        "wait_seconds": wait_seconds,
        "samples": samples,
        "tokens": tokens,
        "loss": loss,
        "learning_rate": learning_rate,
        "peak_memory_bytes": peak_memory_bytes,
    }


def model_line(
    time: float, parameters: int, flops_per_token: Optional[float], formula: Optional[str]
) -> Dict[str, Any]:
    """Model size, and training FLOPs (forward and backward) for one token with the formula that gave them."""
    return {
        "kind": "model",
        "time": time,
        "parameters": parameters,
        "flops_per_token": flops_per_token,
        "formula": formula,
    }


def evaluation_line(time: float, step: int, metrics: Dict[str, float]) -> Dict[str, Any]:
    """``metrics``: loss, accuracy, perplexity, or the user's own names."""
    return {"kind": "evaluation", "time": time, "step": step, "metrics": metrics}


def error_line(time: float, outcome: str, message: str) -> Dict[str, Any]:
    """``outcome`` is a value of traindyno.core.jobs.outcome.Outcome."""
    return {"kind": "error", "time": time, "outcome": outcome, "message": message}


def end_line(time: float, steps: int) -> Dict[str, Any]:
    """Last line of a process that ended of its own accord; a log without it was cut off."""
    return {"kind": "end", "time": time, "steps": steps}


def failure_text(outcome: str, message: str) -> str:
    """What a container writes to /opt/ml/output/failure, which SageMaker puts into the job's FailureReason."""
    return "{}: {}: {}".format(FAILURE_PREFIX, outcome, message)
