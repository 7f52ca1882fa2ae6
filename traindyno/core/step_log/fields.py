"""One line of a step log, already JSON, to its value: no required field is missing, each has its type and is possible.

The fields of a kind of line are those of its class in ``content`` or ``steps``, with their types. A field with a
default may be absent. Fields that the class lacks are ignored.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from math import inf, isfinite, nan
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from traindyno.core.documents.versions import Format, VersionUnknown
from traindyno.core.step_log.content import Environment, Evaluation, HostLoad, LoggedError, ModelSize, Phase
from traindyno.core.step_log.line import SCHEMA_VERSION
from traindyno.core.step_log.steps import LoggedStep

NOT_FINITE = {"nan": nan, "inf": inf, "-inf": -inf}
LARGEST = 1e60  # of a larger number, squares and their sums would leave the range of a float
MOST_PROCESSES = 100_000
LONGEST_HOST_NAME, LONGEST_TEXT = 255, 10_000
MOST_LEVELS = 20
NAMES = {int: "an integer", float: "a number", str: "text", NoneType: "null", dict: "an object"}


class LineInvalid(ValueError):
    """A line's field is missing, of another type, or impossible."""


def types_in_json(kind: type) -> dict[str, tuple[type, ...]]:
    """The types that a JSON value may have, for each field of a class, in the order of its fields."""
    return {name: tuple(_types_of(hint)) for name, hint in get_type_hints(kind).items()}


def _types_of(hint: Any) -> list[type]:
    if isinstance(hint, UnionType):
        return [each for part in get_args(hint) for each in _types_of(part)]
    if get_origin(hint) is Mapping:
        return [dict]
    return [int, float] if hint is float else [hint]


_STEP_FIELDS = itemgetter(*LoggedStep._fields)


def step_of(line: Mapping[str, Any]) -> LoggedStep:
    try:
        step = LoggedStep(*_STEP_FIELDS(line))
    except KeyError as error:
        raise LineInvalid(f"field {error} is missing") from error
    loss = step.loss
    if isinstance(loss, str) and loss in NOT_FINITE:
        step = step._replace(loss=NOT_FINITE[loss])
    _check_types_of_step(tuple(map(type, step)))
    _check_step(step)
    return step


@cache
def _check_types_of_step(types: tuple[type, ...]) -> None:
    """Checked once per combination of types, of which a log of a hundred thousand lines has a few."""
    for (name, allowed), found in zip(types_in_json(LoggedStep).items(), types, strict=True):
        _check_type(name, allowed, found)


def _check_step(step: LoggedStep) -> None:
    _check_size("step", step.step)
    _check_size("loss", step.loss)
    counts = (step.samples, step.tokens or 0, step.peak_memory_bytes or 0)
    is_timed = 0 <= step.begin <= step.end <= LARGEST and 0 <= step.wait_seconds <= LARGEST
    if not is_timed or not 0 <= min(counts) <= max(counts) <= LARGEST:
        raise LineInvalid(
            f"step {step.step} has begin {step.begin}, end {step.end}, samples {step.samples}, "
            f"tokens {step.tokens}, wait_seconds {step.wait_seconds}, peak_memory_bytes {step.peak_memory_bytes}; "
            f"expected begin <= end and nothing negative or above {LARGEST:g}"
        )


def _check_size(name: str, value: float | None) -> None:
    """The loss of a model may also be not finite."""
    if value is not None and LARGEST < abs(value) < inf:
        raise LineInvalid(f"{name}: got a number beyond {LARGEST:g}, expected {-LARGEST:g} to {LARGEST:g}")


STEP_LOG = Format(name="step log", version=SCHEMA_VERSION, key="schema_version")


def environment_of(line: Mapping[str, Any]) -> Environment:
    try:
        line = STEP_LOG.read(line)
    except VersionUnknown as error:
        raise LineInvalid(str(error)) from error
    environment = Environment(**read_fields(Environment, line))
    if not 0 <= environment.rank < environment.world_size:
        raise LineInvalid(f"rank {environment.rank} is not within a world of {environment.world_size}")
    if environment.world_size > MOST_PROCESSES:
        raise LineInvalid(f"world_size: got {environment.world_size}, expected {MOST_PROCESSES} at most")
    for name in ("host", "host_id", "launch"):
        if len(getattr(environment, name) or "") > LONGEST_HOST_NAME:
            raise LineInvalid(f"{name}: got a longer text than {LONGEST_HOST_NAME} characters")
    return environment


def phase_of(line: Mapping[str, Any]) -> Phase:
    phase = Phase(**read_fields(Phase, line))
    if not 0 <= phase.begin <= phase.end < inf:
        raise LineInvalid(f"phase has begin {phase.begin}, end {phase.end}; expected begin <= end")
    return phase


def model_of(line: Mapping[str, Any]) -> ModelSize:
    return ModelSize(**read_fields(ModelSize, line))


def evaluation_of(line: Mapping[str, Any]) -> Evaluation:
    evaluation = Evaluation(**read_fields(Evaluation, line))
    metrics = {name: _metric(evaluation.metrics, name) for name in evaluation.metrics}
    return replace(evaluation, metrics=metrics)


def _metric(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics[name]
    if isinstance(value, str) and value in NOT_FINITE:
        return NOT_FINITE[value]
    _check_type(name, (int, float), type(value))
    _check_size(name, value)
    return float(value)


def host_load_of(line: Mapping[str, Any]) -> HostLoad:
    load = HostLoad(**read_fields(HostLoad, line))
    if not 0 <= load.begin < load.end < inf or load.host_cpu_count < 1:
        raise LineInvalid(
            f"host_load has begin {load.begin}, end {load.end}, "
            f"host_cpu_count {load.host_cpu_count}; "
            "expected begin < end and at least one CPU"
        )
    return load


def end_reason_of(line: Mapping[str, Any]) -> str | None:
    """None if the run did all its steps."""
    reason: str | None = _take(line, "reason", (str,)) if "reason" in line else None
    return reason


def end_steps_of(line: Mapping[str, Any]) -> int | None:
    """Its last step, of this session or an earlier one."""
    steps: int | None = _take(line, "steps", (int,)) if "steps" in line else None
    return steps


def error_of(line: Mapping[str, Any]) -> LoggedError:
    return LoggedError(**read_fields(LoggedError, line))


def read_fields(kind: type, line: Mapping[str, Any]) -> dict[str, Any]:
    """A dataclass's fields from a line; what the line lacks gets its default."""
    types, optional = _expected(kind)
    return {name: _take(line, name, allowed) for name, allowed in types.items() if name in line or name not in optional}


@cache
def _expected(kind: type) -> tuple[dict[str, tuple[type, ...]], frozenset[str]]:
    return types_in_json(kind), frozenset(each.name for each in fields(kind) if each.default is not MISSING)


def _take(line: Mapping[str, Any], name: str, allowed: tuple[type, ...]) -> Any:
    if name not in line:
        raise LineInvalid(f"field {name!r} is missing")
    value = line[name]
    _check_type(name, allowed, type(value))
    if isinstance(value, float) and not isfinite(value):
        raise LineInvalid(f"{name}: got {value}, expected a finite number")
    _check_extent(name, value, levels=MOST_LEVELS)
    return value


def _check_extent(name: str, value: Any, *, levels: int) -> None:
    """Every text and number within ``value`` can be stored and computed with, and it is not nested too deeply."""
    match value:
        case bool() | None:
            return
        case int() | float():
            _check_size(name, value)
        case str():
            if len(value) > LONGEST_TEXT:
                raise LineInvalid(f"{name}: got a text of {len(value)} characters, expected {LONGEST_TEXT} at most")
        case _ if levels == 0:
            raise LineInvalid(f"{name}: got more than {MOST_LEVELS} levels of lists and objects within each other")
        case _:
            for inner in (*value, *value.values()) if isinstance(value, dict) else value:
                _check_extent(name, inner, levels=levels - 1)


def _check_type(name: str, allowed: tuple[type, ...], found: type) -> None:
    if found not in allowed:
        raise LineInvalid(f"{name}: got {NAMES.get(found, found.__name__)}, expected {_names(allowed)}")


def _names(allowed: tuple[type, ...]) -> str:
    names = [NAMES[kind] for kind in allowed if not (kind is int and float in allowed)]
    return " or ".join(names)
