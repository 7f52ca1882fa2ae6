"""One line of a step log, already JSON, to its value: every field is present, of its type, and possible."""

from collections.abc import Mapping
from functools import cache
from math import inf, nan
from operator import itemgetter
from types import NoneType
from typing import Any

from traindyno.core.documents.versions import Format, VersionUnknown
from traindyno.core.step_log.content import Environment, Evaluation, HostLoad, LoggedError, ModelSize, Phase, Step
from traindyno.core.step_log.line import SCHEMA_VERSION

NUMBER = (int, float)
OPTIONAL_NUMBER = (int, float, NoneType)
NOT_FINITE = {"nan": nan, "inf": inf, "-inf": -inf}
NAMES = {int: "an integer", float: "a number", str: "text", NoneType: "null", dict: "an object"}
STEP_TYPES: dict[str, tuple[type, ...]] = {
    "step": (int,),
    "begin": NUMBER,
    "end": NUMBER,
    "wait_seconds": NUMBER,
    "samples": (int,),
    "tokens": (int, NoneType),
    "loss": OPTIONAL_NUMBER,
    "learning_rate": OPTIONAL_NUMBER,
    "peak_memory_bytes": (int, NoneType),
}

_step_fields = itemgetter(*Step._fields)


class LineInvalid(ValueError):
    """A line's field is missing, of another type, or impossible."""


def step_of(line: Mapping[str, Any]) -> Step:
    try:
        step = Step(*_step_fields(line))
    except KeyError as error:
        raise LineInvalid(f"field {error} is missing") from error
    loss = line["loss"]
    if isinstance(loss, str) and loss in NOT_FINITE:
        step = step._replace(loss=NOT_FINITE[loss])
    _check_step_types(tuple(map(type, step)))
    if not 0 <= step.begin <= step.end < inf or step.samples < 0 or not 0 <= step.wait_seconds < inf:
        raise LineInvalid(
            f"step {step.step} has begin {step.begin}, end {step.end}, samples {step.samples}, "
            f"wait_seconds {step.wait_seconds}; expected begin <= end and nothing negative"
        )
    return step


@cache
def _check_step_types(types: tuple[type, ...]) -> None:
    """Checked once per combination of types, of which a log of a hundred thousand lines has a few."""
    for (name, allowed), found in zip(STEP_TYPES.items(), types, strict=True):
        if found not in allowed:
            raise LineInvalid(f"{name}: expected {_names(allowed)}, found {NAMES.get(found, found.__name__)}")


def _without_host_id(line: dict[str, Any]) -> dict[str, Any]:
    """Version 1 has no host_id, no host_load lines, and null for a loss that is not finite."""
    return {"host_id": None, **line}


STEP_LOG = Format(name="step log", version=SCHEMA_VERSION, migrations={1: _without_host_id}, key="schema_version")


def environment_of(line: Mapping[str, Any]) -> Environment:
    try:
        line = STEP_LOG.read(line)
    except VersionUnknown as error:
        raise LineInvalid(str(error)) from error
    rank, world_size = _take(line, "rank", int), _take(line, "world_size", int)
    if not 0 <= rank < world_size:
        raise LineInvalid(f"rank {rank} is not within a world of {world_size}")
    return Environment(
        time=_take(line, "time", *NUMBER),
        rank=rank,
        world_size=world_size,
        host=_take(line, "host", str),
        facts=_take(line, "facts", dict),
        host_id=_take(line, "host_id", str, NoneType),
    )


def phase_of(line: Mapping[str, Any]) -> Phase:
    begin, end = _take(line, "begin", *NUMBER), _take(line, "end", *NUMBER)
    if not 0 <= begin <= end < inf:
        raise LineInvalid(f"phase has begin {begin}, end {end}; expected begin <= end")
    return Phase(name=_take(line, "name", str), begin=begin, end=end, facts=_take(line, "facts", dict))


def model_of(line: Mapping[str, Any]) -> ModelSize:
    return ModelSize(
        parameters=_take(line, "parameters", int),
        flops_per_token=_take(line, "flops_per_token", *OPTIONAL_NUMBER),
        formula=_take(line, "formula", str, NoneType),
    )


def evaluation_of(line: Mapping[str, Any]) -> Evaluation:
    metrics = _take(line, "metrics", dict)
    return Evaluation(
        time=_take(line, "time", *NUMBER),
        step=_take(line, "step", int),
        metrics={name: _metric(metrics, name) for name in metrics},
    )


def _metric(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics[name]
    if isinstance(value, str) and value in NOT_FINITE:
        return NOT_FINITE[value]
    number: float = _take(metrics, name, *NUMBER)
    return number


def host_load_of(line: Mapping[str, Any]) -> HostLoad:
    load = HostLoad(
        begin=_take(line, "begin", *NUMBER),
        end=_take(line, "end", *NUMBER),
        cpu_seconds=_take(line, "cpu_seconds", *NUMBER),
        involuntary_switches=_take(line, "involuntary_switches", int),
        run_queue_seconds=_take(line, "run_queue_seconds", *NUMBER),
        host_busy_seconds=_take(line, "host_busy_seconds", *NUMBER),
        steal_seconds=_take(line, "steal_seconds", *NUMBER),
        load_average=_take(line, "load_average", *NUMBER),
        host_cpu_count=_take(line, "host_cpu_count", int),
    )
    if not 0 <= load.begin < load.end < inf or load.host_cpu_count < 1:
        raise LineInvalid(
            f"host_load has begin {load.begin}, end {load.end}, host_cpu_count {load.host_cpu_count}; "
            "expected begin < end and at least one CPU"
        )
    return load


def end_reason_of(line: Mapping[str, Any]) -> str | None:
    """None if the run did all its steps, and in logs of earlier versions."""
    reason: str | None = _take(line, "reason", str) if "reason" in line else None
    return reason


def error_of(line: Mapping[str, Any]) -> LoggedError:
    return LoggedError(
        time=_take(line, "time", *NUMBER), outcome=_take(line, "outcome", str), message=_take(line, "message", str)
    )


def _take(line: Mapping[str, Any], name: str, *allowed: type) -> Any:
    if name not in line:
        raise LineInvalid(f"field {name!r} is missing")
    value = line[name]
    if type(value) not in allowed:
        raise LineInvalid(f"{name}: expected {_names(allowed)}, found {NAMES.get(type(value), type(value).__name__)}")
    return value


def _names(allowed: tuple[type, ...]) -> str:
    names = [NAMES[kind] for kind in allowed if not (kind is int and float in allowed)]
    return " or ".join(names)
