"""What the lines of a step log mean, one by one and in their order.

Runs on Python 3.8 (frozen images): the lab reads a whole log with it, and the parent of a shared
job a log that grows.

The fields of a kind of line are those of its class here, with their types. A field with a default
may be absent, but not a step's. Fields that the class lacks are ignored.
"""

from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from math import inf, isfinite, nan
from operator import itemgetter
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from traindyno.core.step_log.line import (
    BATCH_SEARCH,
    CHECKSUMS,
    IN_BACKGROUND,
    KEPT_STEPS,
    SCHEMA_VERSION,
    SETUP,
    UNLOGGED_STEPS,
    LoggedStep,
)

NOT_FINITE = {"nan": nan, "inf": inf, "-inf": -inf}
LARGEST = 1e60  # of a larger number, squares and their sums would leave the range of a float
LARGEST_COUNT = 2**62
MOST_PROCESSES = 100_000
LONGEST_HOST_NAME = 255
LONGEST_TEXT = 10_000
SHOWN_CHARACTERS = 60
MOST_LEVELS = 20
NAMES = {int: "an integer", float: "a number", str: "text", type(None): "null", dict: "an object"}
KINDS = "environment, phase, step, model, evaluation, host_load, error, end"
_STEP_FIELDS = itemgetter(*LoggedStep._fields)


class LineInvalid(ValueError):
    """A line's field is missing, of another type, or impossible."""


@dataclass(frozen=True)
class Environment:
    """Environment of a process.

    ``host`` is a name within the job; ``host_id`` names the machine, ``launch`` the start of the
    job, None where it is unknown.
    """

    time: float
    rank: int
    world_size: int
    host: str
    facts: Mapping[str, Any]
    host_id: Optional[str] = None
    launch: Optional[str] = None


@dataclass(frozen=True)
class LoggedPhase:
    name: str
    begin: float
    end: float
    facts: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    @property
    def is_in_background(self) -> bool:
        """Steps continued during this phase, so it takes none of their time."""
        return bool(self.facts.get(IN_BACKGROUND))


@dataclass(frozen=True)
class ModelSize:
    """Size of a model.

    ``trained`` counts the parameters that are trained beside an adapter's frozen base; None if all
    may be.
    """

    parameters: int
    flops_per_token: Optional[float]
    formula: Optional[str]
    trained: Optional[int] = None


@dataclass(frozen=True)
class Evaluation:
    time: float
    step: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class HostLoad:
    """The load of a process and its host from ``begin`` to ``end``; see ``host_load_line`` for the
    fields.
    """

    begin: float
    end: float
    cpu_seconds: float
    run_queue_seconds: float
    host_busy_seconds: float
    steal_seconds: float
    host_cpu_count: int

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class LoggedError:
    time: float
    outcome: str
    message: str


class StepKeeper(Protocol):
    def append(self, step: LoggedStep) -> None: ...
    def keep_until(self, number: int) -> int:
        """Forget the steps after this one; return how many are left."""


class ProcessLines:
    """The lines of one process so far, by kind.

    ``steps`` gets its steps; a log that is truncated has not ended.

    ``end_reason``: why it ended before its last step (see ``end_line``). ``ended_after``: the last
    step that it or an earlier session did, as its end line says.
    """

    def __init__(self, steps: StepKeeper) -> None:
        self._steps = steps
        self._latest = 0, -inf  # number and begin of the last step
        self.step_count = 0
        self.environment: Optional[Environment] = None
        self.phases: List[LoggedPhase] = []
        self.model: Optional[ModelSize] = None
        self.evaluations: List[Evaluation] = []
        self.errors: List[LoggedError] = []
        self.host_loads: List[HostLoad] = []
        self.is_ended = False
        self.end_reason: Optional[str] = None
        self.ended_after: Optional[int] = None

    def add(self, line: Mapping[str, Any]) -> None:
        """Raises LineInvalid for a line that is to be left out."""
        kind = line["kind"]
        if kind == "step":
            self._add_step(step_of(line))
        elif kind == "environment":
            self.environment = environment_of(line)
        elif kind == "phase":
            self._add_phase(phase_of(line))
        elif kind == "model":
            self.model = ModelSize(**read_fields(ModelSize, line))
        elif kind == "evaluation":
            self.evaluations.append(evaluation_of(line))
        elif kind == "host_load":
            self.host_loads.append(host_load_of(line))
        elif kind == "error":
            self.errors.append(LoggedError(**read_fields(LoggedError, line)))
        elif kind == "end":
            self.is_ended = True
            self.end_reason = _take(line, "reason", (str,)) if "reason" in line else None
            self.ended_after = _take(line, "steps", (int,)) if "steps" in line else None
        else:
            raise LineInvalid("kind {} is unknown; known: {}".format(_shown(kind), KINDS))

    def _add_step(self, step: LoggedStep) -> None:
        number, begin = self._latest
        if self.step_count and step.step <= number:
            raise LineInvalid(
                "step {} follows step {}; expected rising numbers".format(step.step, number)
            )
        if step.begin < begin:
            raise LineInvalid(
                "step {} begins before step {}; the clock went back".format(step.step, number)
            )
        self._latest = step.step, step.begin
        self.step_count += 1
        self._steps.append(step)

    def _add_phase(self, phase: LoggedPhase) -> None:
        """What a process did with a batch that turned out to be too large doesn't count."""
        if phase.name == BATCH_SEARCH:
            last = phase.facts.get(KEPT_STEPS)
            if not isinstance(last, int):
                last_phase = _shown(last)
                raise LineInvalid(
                    "{} has {} {}; expected the number of a step".format(
                        BATCH_SEARCH, KEPT_STEPS, last_phase
                    )
                )
            self.step_count = self._steps.keep_until(last)
            self._latest = min(last, self._latest[0]), self._latest[1]
            self.phases = [earlier for earlier in self.phases if earlier.end <= phase.begin]
            self.evaluations = [
                evaluation for evaluation in self.evaluations if evaluation.time <= phase.begin
            ]
        self.phases.append(phase)


def facts_of(environment: Optional[Environment], phases: Sequence[LoggedPhase]) -> Dict[str, Any]:
    """The conditions of a process, including what it learnt until its first step."""
    learnt = next((phase.facts for phase in phases if phase.name == SETUP), {})
    return {**(environment.facts if environment else {}), **learnt}


def facts_between_steps(phases: Sequence[LoggedPhase]) -> Optional[Mapping[str, Any]]:
    """What a process last said that it did between its steps."""
    return next((phase.facts for phase in reversed(phases) if UNLOGGED_STEPS in phase.facts), None)


def types_in_json(kind: type) -> Dict[str, Tuple[type, ...]]:
    """The types that a JSON value may have, for each field of a class, in the order of its
    fields.
    """
    return {name: tuple(_types_of(hint)) for name, hint in get_type_hints(kind).items()}


def _types_of(hint: Any) -> List[type]:
    if get_origin(hint) is Union:
        return [member for part in get_args(hint) for member in _types_of(part)]
    if get_origin(hint) is not None:
        return [dict]
    return [int, float] if hint is float else [hint]


def have_equal_batches(processes: Sequence[ProcessLines]) -> bool:
    """Whether two processes trained on the same first batches, and did not say that they share
    them.
    """
    checksums = first_batches(processes)
    return len({*checksums}) < len(checksums)


def first_batches(processes: Iterable[ProcessLines]) -> List[str]:
    """The checksums of the first batches of each process that did not say whether it shares
    them.
    """
    return [
        repr(phase.facts[CHECKSUMS])
        for process in processes
        for phase in process.phases
        if isinstance(phase.facts.get(CHECKSUMS), list)
    ]


def step_of(line: Mapping[str, Any]) -> LoggedStep:
    try:
        step = LoggedStep(*_STEP_FIELDS(line))
    except KeyError as error:
        raise LineInvalid("field {} is missing".format(error)) from error
    loss = step.loss
    if isinstance(loss, str) and loss in NOT_FINITE:
        step = step._replace(loss=NOT_FINITE[loss])
    _check_types_of_step(tuple(map(type, step)))
    _check_step(step)
    return step


@lru_cache(maxsize=None)
def _check_types_of_step(types: Tuple[type, ...]) -> None:
    """Checked once per combination of types, of which a log of a hundred thousand lines has a
    few.
    """
    for (name, allowed), kind in zip(types_in_json(LoggedStep).items(), types):
        _check_type(name, allowed, kind)


def _check_step(step: LoggedStep) -> None:
    _check_size("step", step.step)
    _check_size("loss", step.loss)
    counts = (step.step, step.samples, step.tokens or 0, step.peak_memory_bytes or 0)
    is_timed = 0 <= step.begin <= step.end <= LARGEST and 0 <= step.wait_seconds <= LARGEST
    if not is_timed or not 0 <= min(counts) <= max(counts) <= LARGEST_COUNT:
        raise LineInvalid(
            f"step {step.step} has begin {step.begin}, end {step.end}, samples {step.samples}, "
            f"tokens {step.tokens}, wait_seconds {step.wait_seconds}, peak_memory_bytes "
            f"{step.peak_memory_bytes}; expected begin <= end and nothing negative or above "
            f"{LARGEST:g}, for a count {LARGEST_COUNT}"
        )


def _check_size(name: str, value: Optional[float]) -> None:
    """The loss of a model may also be not finite."""
    if value is not None and LARGEST < abs(value) < inf:
        raise LineInvalid(
            f"{name}: got a number beyond {LARGEST:g}, expected {-LARGEST:g} to {LARGEST:g}"
        )


def environment_of(line: Mapping[str, Any]) -> Environment:
    version = line.get("schema_version")
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        given = (
            "no schema_version"
            if version is None
            else f"schema_version {_shown(version)} of another Traindyno"
        )
        raise LineInvalid(f"step log: got {given}, expected {SCHEMA_VERSION}")
    environment = Environment(**read_fields(Environment, line))
    if not 0 <= environment.rank < environment.world_size:
        raise LineInvalid(
            f"rank {environment.rank} is not within a world of {environment.world_size}"
        )
    if environment.world_size > MOST_PROCESSES:
        raise LineInvalid(
            f"world_size: got {environment.world_size}, expected {MOST_PROCESSES} at most"
        )
    for name in ("host", "host_id", "launch"):
        if len(getattr(environment, name) or "") > LONGEST_HOST_NAME:
            raise LineInvalid(f"{name}: got a longer text than {LONGEST_HOST_NAME} characters")
    return environment


def phase_of(line: Mapping[str, Any]) -> LoggedPhase:
    phase = LoggedPhase(**read_fields(LoggedPhase, line))
    if not 0 <= phase.begin <= phase.end < inf:
        raise LineInvalid(f"phase has begin {phase.begin}, end {phase.end}; expected begin <= end")
    return phase


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


def read_fields(kind: type, line: Mapping[str, Any]) -> Dict[str, Any]:
    """A dataclass's fields from a line; what the line lacks gets its default."""
    types, optional = _expected(kind)
    return {
        name: _take(line, name, allowed)
        for name, allowed in types.items()
        if name in line or name not in optional
    }


@lru_cache(maxsize=None)
def _expected(kind: Any) -> Tuple[Dict[str, Tuple[type, ...]], FrozenSet[str]]:
    return types_in_json(kind), frozenset(
        field.name for field in fields(kind) if field.default is not MISSING
    )


def _take(line: Mapping[str, Any], name: str, allowed: Tuple[type, ...]) -> Any:
    if name not in line:
        raise LineInvalid(f"field {name!r} is missing")
    value = line[name]
    _check_type(name, allowed, type(value))
    if isinstance(value, float) and not isfinite(value):
        raise LineInvalid(f"{name}: got {value}, expected a finite number")
    _check_extent(name, value, levels=MOST_LEVELS)
    return value


def _check_extent(name: str, value: Any, *, levels: int) -> None:
    """Every text and number within ``value`` can be stored and computed with, and it is not nested
    too deeply.
    """
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        _check_size(name, value)
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise LineInvalid(
                f"{name}: got a text of {len(value)} characters, expected {LONGEST_TEXT} at most"
            )
    elif levels == 0:
        raise LineInvalid(
            f"{name}: got more than {MOST_LEVELS} levels of lists and objects within each other"
        )
    else:
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_extent(name, inner, levels=levels - 1)


def _check_type(name: str, allowed: Tuple[type, ...], actual: type) -> None:
    if actual not in allowed:
        names = [NAMES[kind] for kind in allowed if not (kind is int and float in allowed)]
        raise LineInvalid(
            "{}: got {}, expected {}".format(
                name, NAMES.get(actual, actual.__name__), " or ".join(names)
            )
        )


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:SHOWN_CHARACTERS])
    if isinstance(value, (int, float)):
        return repr(value)[:SHOWN_CHARACTERS]
    return NAMES.get(type(value), type(value).__name__)
