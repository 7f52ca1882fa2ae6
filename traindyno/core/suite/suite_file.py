"""Documents (YAML or JSON, already loaded) to a Suite or one of its parts, and back."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_type_hints

from cattrs import Converter
from cattrs.errors import BaseValidationError
from cattrs.gen import override

from traindyno.core.documents.converter import Structure, dataclass_structure, strict_converter
from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.problems import (
    FieldProblems,
    Unexpected,
    close_to,
    expected_of,
    one_of,
    problems_of,
    unknown_field,
    without,
)
from traindyno.core.documents.stored import JsonValue, is_number
from traindyno.core.documents.versions import Format
from traindyno.core.errors import Problem, SuiteInvalid
from traindyno.core.run.settings import (
    HYPERPARAMETER_PREFIX,
    Adapter,
    BatchSearch,
    LearningRate,
    setting_types,
)
from traindyno.core.run.workload import Model
from traindyno.core.suite import choices
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import GoalKind, Jobs, Quality, Search
from traindyno.core.suite.feature import SuiteFeature
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite

QUALITIES = tuple(quality.value for quality in Quality)
# Goal → the fields of which it names one.
GOAL_LIMITS: dict[GoalKind, tuple[str, ...]] = {
    GoalKind.CHEAPEST_WITHIN: ("hours",),
    GoalKind.FASTEST_WITHIN: ("usd",),
    GoalKind.CHEAPEST_TO: QUALITIES,
    GoalKind.FASTEST_TO: QUALITIES,
}
SYNONYMS = {
    GoalKind.FASTEST: (
        "fast",
        "quick",
        "quickest",
        "shortest",
        "soonest",
        "speed",
        "time",
        "throughput",
    ),
    GoalKind.CHEAPEST: ("cheap", "cost", "price", "money", "usd", "least-cost", "lowest-cost"),
}
CHOICES = [
    kind for kind in vars(choices).values() if isinstance(kind, type) and issubclass(kind, StrEnum)
]
# The first run of a leading cell, and four times two more, forward and backward
TRIALS_OF_A_RACE = 9
TRIALS_ALONE = 3  # of a cell without others
# Two warm up. The leading cells run again, so that the answer has several times as many. Short
# steps are more, because a run of a fraction of a second shows what else the machine did in it.
STEPS_OF_A_RACE = 20
SECONDS_OF_A_RACE = 2.0
# What a suite may name so that its runs are longer; a quality needs evaluations.
SAY_LENGTH = frozenset(
    {
        "max_steps",
        "least_seconds",
        "warmup",
        "stop_when",
        "evaluate_every_steps",
        "checkpoint_every_steps",
    }
)
BATCH = int | BatchSearch
ADAPTER = Adapter | None
FULL_TRAINING = "none"
WRONG_VALUE = (Unexpected, BaseValidationError, FieldProblems)

Part = TypeVar("Part")
# Earlier suites have these fields also where their file named none.
REMOVED_WITH_DEFAULTS = frozenset({"measurement.probes", "training_plans"})
STORED_SUITE = Format(name="stored suite", version=1)
FEATURES = "features"
OWN_FIELDS = [field.name for field in fields(Suite) if field.name != FEATURES]


@cache
def suite_converter() -> Converter:
    converter = strict_converter(CHOICES)
    learning_rate = _with_short_form(dataclass_structure(converter, LearningRate), "base", float)
    model = _with_short_form(dataclass_structure(converter, Model), "path", str)
    converter.register_structure_hook(LearningRate, learning_rate)
    searched = dataclass_structure(converter, BatchSearch)
    converter.register_structure_hook_func(
        lambda kind: kind == BATCH, lambda value, _: _structure_batch(searched, value)
    )
    converter.register_unstructure_hook_func(
        lambda kind: kind == BATCH,
        lambda value: value if isinstance(value, int) else converter.unstructure(value),
    )
    adapter = dataclass_structure(
        converter,
        Adapter,
        targets=override(
            struct_hook=lambda value, kind: converter.structure(
                [value] if isinstance(value, str) else value, kind
            )
        ),
    )
    converter.register_structure_hook_func(
        lambda kind: kind == ADAPTER, lambda value, _: _structure_adapter(adapter, value)
    )
    converter.register_structure_hook(Model, model)
    converter.register_structure_hook(Goal, lambda value, _: _structure_goal(converter, value))
    converter.register_unstructure_hook(Goal, _unstructure_goal)
    point = override(struct_hook=lambda value, _: _structure_point(converter, value))
    points = override(struct_hook=lambda value, _: _structure_points(converter, value))
    matrix = override(struct_hook=lambda value, _: _structure_matrix(converter, value))
    structure = dataclass_structure(
        converter,
        Suite,
        training=point,
        baseline=point,
        matrix=matrix,
        include=points,
        exclude=points,
    )
    converter.register_structure_hook(
        Suite, lambda value, kind: _with_defaults(value, structure(value, kind))
    )
    return converter


def _with_short_form(structure: Structure, field: str, short: type) -> Structure:
    """Also accept the value of one field alone: ``0.1`` for ``{base: 0.1}``."""

    def structure_either(value: Any, kind: Any) -> Any:
        is_short = is_number(value) if short is float else isinstance(value, short)
        try:
            return structure({field: value} if is_short else value, kind)
        except Unexpected as error:
            raise Unexpected(f"{expected_of(short)} or {error.expected}", value) from error

    return structure_either


def _structure_batch(structure: Structure, value: Any) -> int | BatchSearch:
    if isinstance(value, Mapping):
        return structure(value, BatchSearch)  # type: ignore[no-any-return]
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unexpected("an integer, {search: largest} or {search: best}", value)
    return value


def _structure_adapter(structure: Structure, value: Any) -> Adapter | None:
    if value is None or value == FULL_TRAINING:
        return None
    if not isinstance(value, Mapping):
        raise Unexpected("none or a mapping such as {rank: 16}", value)
    return structure(value, Adapter)  # type: ignore[no-any-return]


def _with_defaults(document: Mapping[str, Any], suite: Suite) -> Suite:
    """The suite with the defaults that depend on other settings.

    Without shared jobs the first round of a race is not cheap, and most such suites are asked what
    one job of each cell costs. One cell has no rival: all its trials are in its first job.
    """
    named = document.get("measurement", {})
    measurement = suite.measurement
    search = suite.search
    is_short = search.is_race
    if "search" not in document and measurement.jobs is Jobs.SEPARATE:
        search = Search.GRID
        is_short = False
    elif "search" not in document and suite.has_one_cell:
        search = Search.GRID
    if "trials" not in named and is_short:
        trials = TRIALS_OF_A_RACE if search.is_race else TRIALS_ALONE
        measurement = replace(measurement, trials=trials)
    if is_short and not named.keys() & SAY_LENGTH:
        measurement = replace(measurement, max_steps=STEPS_OF_A_RACE)
        # A script decides itself, and the full run's schedule is tried at a step that is named.
        if suite.workload.task is not choices.Task.SCRIPT and suite.workload.full_run is None:
            measurement = replace(measurement, least_seconds=SECONDS_OF_A_RACE)
    return replace(suite, measurement=measurement, search=search)


def _structure_point(converter: Converter, document: Any) -> dict[str, Any]:
    """Read some of a cell's settings: field → value."""
    return _structure_fields(
        document, lambda name, value: _structure_setting(converter, name, value)
    )


def _structure_points(converter: Converter, document: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(document, list | tuple):
        raise Unexpected("a list of mappings of settings", document)
    return tuple(
        _structure_each(_numbered(document), lambda _, point: _structure_point(converter, point))
    )


def _structure_matrix(converter: Converter, document: Any) -> dict[str, tuple[Any, ...]]:
    """Read the values of each axis: field → values."""

    def structure_axis(name: str, values: Any) -> tuple[Any, ...]:
        if not isinstance(values, list | tuple):
            raise Unexpected("a list of values", values)
        return tuple(
            _structure_each(
                _numbered(values), lambda _, value: _structure_setting(converter, name, value)
            )
        )

    return _structure_fields(document, structure_axis)


def _structure_setting(converter: Converter, name: str, value: Any) -> Any:
    if name.startswith(HYPERPARAMETER_PREFIX):
        return converter.structure(value, JsonValue)  # type: ignore[arg-type]
    return converter.structure(value, setting_types()[name])


def _structure_fields(document: Any, structure: Callable[[str, Any], Part]) -> dict[str, Part]:
    if not isinstance(document, Mapping):
        raise Unexpected("a mapping of settings", document)
    known = [name for name in document if _is_settings_field(name)]
    accepted = [*setting_types(), f"{HYPERPARAMETER_PREFIX}<name>"]
    unknown = [unknown_field("", name, accepted) for name in document if name not in known]
    parts = _structure_each([(name, document[name]) for name in known], structure, unknown)
    return dict(zip(known, parts, strict=True))


def _structure_each(
    parts: Iterable[tuple[str, Any]],
    structure: Callable[[str, Any], Part],
    problems: Iterable[Problem] = (),
) -> list[Part]:
    """Read all parts. Raises FieldProblems with the given problems and the problems of all
    parts.
    """
    structured = []
    wrong = list(problems)
    for path, value in parts:
        try:
            structured.append(structure(path, value))
        except WRONG_VALUE as error:
            wrong += problems_of(error, path)
    if wrong:
        raise FieldProblems(wrong)
    return structured


def _numbered(values: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    return ((f"[{index}]", value) for index, value in enumerate(values))


def _is_settings_field(name: Any) -> bool:
    return isinstance(name, str) and (
        name in setting_types()
        or (name.startswith(HYPERPARAMETER_PREFIX) and name != HYPERPARAMETER_PREFIX)
    )


def _structure_goal(converter: Converter, value: Any) -> Goal:
    if value in (GoalKind.CHEAPEST, GoalKind.FASTEST):
        return Goal(kind=GoalKind(value))
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in GOAL_LIMITS:
        named = [f"{kind}: {_limit_text(kind)}" for kind in GOAL_LIMITS]
        accepted = [GoalKind.CHEAPEST.value, GoalKind.FASTEST.value, *named]
        meant = (
            [kind for kind, words in SYNONYMS.items() if value in words]
            if isinstance(value, str)
            else []
        )
        raise Unexpected(one_of(accepted), value, meant=meant or close_to(value, accepted))
    ((name, limit),) = value.items()
    kind = GoalKind(name)
    if (
        not isinstance(limit, Mapping)
        or len(limit) != 1
        or next(iter(limit)) not in GOAL_LIMITS[kind]
    ):
        raise FieldProblems(
            [
                Problem(
                    path=name, message=f"got {_mapping_text(limit)}, expected {_limit_text(kind)}"
                )
            ]
        )
    (wanted,) = limit
    try:
        number = converter.structure(limit[wanted], get_type_hints(Goal)[wanted])
    except WRONG_VALUE as error:
        raise FieldProblems(list(problems_of(error, f"{name}.{wanted}"))) from error
    return Goal(kind=kind, **{wanted: number})


def _unstructure_goal(goal: Goal) -> Any:
    if goal.kind not in GOAL_LIMITS:
        return goal.kind.value
    limits = {name: getattr(goal, name) for name in GOAL_LIMITS[goal.kind]}
    given = {name: value for name, value in limits.items() if value is not None}
    return {
        goal.kind.value: {
            name: format(value, "f") if isinstance(value, Decimal) else value
            for name, value in given.items()
        }
    }


def _limit_text(kind: GoalKind) -> str:
    return " or ".join(f"{{{name}: <number>}}" for name in GOAL_LIMITS[kind])


def _mapping_text(value: Any) -> str:
    return f"{{{', '.join(map(str, value))}}}" if isinstance(value, Mapping) else repr(value)


def structure_suite(document: Mapping[str, Any], features: Iterable[SuiteFeature] = ()) -> Suite:
    """Read a suite, which the rules have not checked. Raises SuiteInvalid with all problems of
    form.
    """
    sections = sections_of(features)
    accepted = accepted_fields(sections)
    if not isinstance(document, Mapping):
        error = Unexpected(f"a mapping with {', '.join(accepted)}", document)
        raise SuiteInvalid([Problem(path="", message=str(error))])
    problems: list[Problem] = []
    parsed: dict[type, Any] = {}
    for section in (Suite, *sections):
        try:
            parsed[section] = parse_section(document, section)
        except SuiteInvalid as error:
            problems += error.problems
    unknown = sorted(name for name in map(str, document) if name not in accepted)
    problems += [unknown_field("", name, accepted) for name in unknown]
    if problems:
        raise SuiteInvalid(problems)
    return _with_features(parsed[Suite], document)


def accepted_fields(sections: Iterable[type]) -> list[str]:
    """What stands at the top of a suite's document."""
    return [*OWN_FIELDS, *(field.name for section in sections for field in fields(section))]


def sections_of(features: Iterable[SuiteFeature]) -> list[type]:
    """The fields that features add to the suite file."""
    return [feature.section for feature in features if feature.section is not None]


def parse_section(document: Mapping[str, Any], section: type[Part]) -> Part:
    """Read the suite's own fields or those of a feature, of a suite's document or
    ``Suite.features``. Raises SuiteInvalid with all problems of form.
    """
    names = {field.name for field in fields(section)} - {FEATURES}  # type: ignore[arg-type]
    return parse_part({name: document[name] for name in document if name in names}, section)


def _with_features(suite: Suite, document: Mapping[str, Any]) -> Suite:
    further = {name: document[name] for name in document if name not in OWN_FIELDS}
    return replace(
        suite, features={name: value for name, value in further.items() if value is not None}
    )


def suite_document(suite: Suite) -> dict[str, Any]:
    """The suite as plain values, with money as text; ``structure_suite`` reads it back equal."""
    document = suite_converter().unstructure(suite)
    return {**document.pop(FEATURES), **document}


def stored_suite(suite: Suite) -> dict[str, Any]:
    """The document of a suite with its version; ``read_stored_suite`` reads it back equal."""
    return STORED_SUITE.mark(suite_document(suite))


def read_stored_suite(document: Mapping[str, Any]) -> Suite:
    """Read a suite as it was accepted: today's rules about what can run do not apply, and the
    fields of a feature that is gone are kept. Raises VersionUnknown.
    """
    stored = without(STORED_SUITE.read(document), REMOVED_WITH_DEFAULTS)
    given = {name: value for name, value in stored.items() if name in OWN_FIELDS}
    return _with_features(suite_converter().structure(given, Suite), stored)


def cell_values(cell: Cell) -> dict[str, Any]:
    """The cell's settings and hyperparameters, as a suite writes them."""
    given = {
        f"{HYPERPARAMETER_PREFIX}{name}": value for name, value in cell.hyperparameters.items()
    }
    return {**plain_values(cell.settings), **given}


def parse_part(document: Any, kind: type[Part]) -> Part:
    """Read a part of a suite, such as its settings or its workload. Raises SuiteInvalid with all
    problems of form.
    """
    try:
        return suite_converter().structure(document, kind)
    except WRONG_VALUE as error:
        raise SuiteInvalid(list(problems_of(error, ""))) from error
