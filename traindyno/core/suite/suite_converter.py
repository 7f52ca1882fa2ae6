"""How each part of a suite reads from and writes to a plain document, short forms included."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, get_type_hints

from cattrs import Converter
from cattrs.gen import override

from traindyno.core.documents.converter import dataclass_structure, strict_converter
from traindyno.core.documents.problems import FieldProblems, Unexpected, one_of, problems_of
from traindyno.core.errors import Problem
from traindyno.core.suite import suite
from traindyno.core.suite.settings_points import (
    RENAMED,
    WRONG_VALUE,
    structure_matrix,
    structure_point,
    structure_points,
)
from traindyno.core.suite.suite import Goal, GoalKind, LearningRate, Measurement, Model, Suite

GOAL_LIMITS = {GoalKind.CHEAPEST_WITHIN: "hours", GoalKind.FASTEST_WITHIN: "usd"}
CHOICES = [kind for kind in vars(suite).values() if isinstance(kind, type) and issubclass(kind, StrEnum)]


@cache
def suite_converter() -> Converter:
    converter = strict_converter(CHOICES)
    learning_rate = dataclass_structure(converter, LearningRate)
    model = dataclass_structure(converter, Model)
    converter.register_structure_hook(
        LearningRate, lambda value, kind: learning_rate({"base": value} if _is_number(value) else value, kind)
    )
    converter.register_structure_hook(
        Model, lambda value, kind: model({"path": value} if isinstance(value, str) else value, kind)
    )
    converter.register_structure_hook(Goal, lambda value, _: _structure_goal(converter, value))
    converter.register_unstructure_hook(Goal, _unstructure_goal)
    _register_measurement(converter)
    _register_suite(converter)
    return converter


def _register_suite(converter: Converter) -> None:
    point = override(struct_hook=lambda value, _: structure_point(converter, value))
    points = override(struct_hook=lambda value, _: structure_points(converter, value))
    matrix = override(struct_hook=lambda value, _: structure_matrix(converter, value))
    structure = dataclass_structure(
        converter, Suite, training=point, baseline=point, matrix=matrix, include=points, exclude=points
    )
    converter.register_structure_hook(Suite, structure)


def _register_measurement(converter: Converter) -> None:
    def warmup(value: Any, _: Any) -> int | None:
        if value == "auto":
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unexpected("auto or an integer", value)
        return value

    renamed = override(rename=RENAMED["warmup_steps"], struct_hook=warmup)
    converter.register_structure_hook(Measurement, dataclass_structure(converter, Measurement, warmup_steps=renamed))
    plain = converter.get_unstructure_hook(Measurement)

    def unstructure(value: Measurement) -> dict[str, Any]:
        document = plain(value)
        return {"warmup": document.pop("warmup_steps", "auto"), **document}

    converter.register_unstructure_hook(Measurement, unstructure)


def _structure_goal(converter: Converter, value: Any) -> Goal:
    if value in (GoalKind.CHEAPEST, GoalKind.FASTEST):
        return Goal(kind=GoalKind(value))
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in GOAL_LIMITS:
        accepted = ["cheapest", "fastest", "cheapest-within: {hours: <number>}", "fastest-within: {usd: <number>}"]
        raise Unexpected(one_of(accepted, value), value)
    ((name, limit),) = value.items()
    kind = GoalKind(name)
    wanted = GOAL_LIMITS[kind]
    if not isinstance(limit, Mapping) or set(limit) != {wanted}:
        raise FieldProblems(
            [Problem(path=name, message=f"expected {{{wanted}: <number>}}, got {_mapping_text(limit)}")]
        )
    try:
        number = converter.structure(limit[wanted], get_type_hints(Goal)[wanted])
    except WRONG_VALUE as error:
        raise FieldProblems(list(problems_of(error, f"{name}.{wanted}", RENAMED))) from error
    return Goal(kind=kind, **{wanted: number})


def _unstructure_goal(goal: Goal) -> Any:
    if goal.kind not in GOAL_LIMITS:
        return goal.kind.value
    wanted = GOAL_LIMITS[goal.kind]
    return {goal.kind.value: {wanted: format(getattr(goal, wanted), "f")}}


def _mapping_text(value: Any) -> str:
    return f"{{{', '.join(map(str, value))}}}" if isinstance(value, Mapping) else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
