"""The JSON Schema of the suite file, for editors: generated from the dataclasses that the file is read into."""

from decimal import Decimal
from typing import Any

from traindyno.core.instances.instance_types import instance_types
from traindyno.core.suite.schema_types import Schema, object_schema, schema_of, with_bound
from traindyno.core.suite.settings_points import HYPERPARAMETER_PREFIX, settings_types
from traindyno.core.suite.suite import (
    Goal,
    GoalKind,
    LearningRate,
    Measurement,
    Model,
    Suite,
    Task,
    Tokenizer,
    Workload,
)
from traindyno.core.suite.suite_bounds import POSITIVE, SETTINGS_BOUNDS, SUITE_BOUNDS, Bound
from traindyno.core.suite.suite_check import NAME, NAME_CHARACTERS
from traindyno.core.suite.suite_converter import GOAL_LIMITS
from traindyno.core.suite.workload_check import SCRIPT_FIELDS

TITLE = "Traindyno suite"
HYPERPARAMETER_PATTERN = f"^{HYPERPARAMETER_PREFIX.replace('.', chr(92) + '.')}.+$"
SCALAR: Schema = {"type": ["string", "number", "boolean"]}


def suite_schema() -> Schema:
    schema = object_schema(Suite, _special())
    properties = schema["properties"]
    properties["name"] = {"type": "string", "pattern": f"^{NAME.pattern}$", "maxLength": NAME_CHARACTERS}
    properties["training"] = properties["baseline"] = _point()
    properties["include"] = {"type": "array", "items": _point()}
    properties["exclude"] = {"type": "array", "items": {**_point(), "minProperties": 1}}
    properties["matrix"] = _matrix()
    properties["claims"] = {"type": ["string", "object", "null"]}
    for path, bound in SUITE_BOUNDS.items():
        if not path.startswith("goal."):
            _bind(schema, path.split("."), bound)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        **schema,
        "$defs": {name: _setting(name, kind) for name, kind in settings_types().items()},
    }


def _special() -> dict[Any, Schema]:
    """Types with a short form or with alternatives of which one must be chosen."""
    learning_rate = object_schema(LearningRate, {})
    learning_rate["properties"]["base"] = with_bound({"type": "number"}, POSITIVE)
    model = {**object_schema(Model, {}), "oneOf": [{"required": ["path"]}, {"required": ["config"]}]}
    alternatives = [{"required": ["path"]}, {"required": ["train_vocabulary_size"]}]
    special: dict[Any, Schema] = {
        Goal: _goal(),
        LearningRate: {"anyOf": [with_bound({"type": "number"}, POSITIVE), learning_rate]},
        Model: {"anyOf": [{"type": "string"}, model]},
        Tokenizer: {**object_schema(Tokenizer, {}), "oneOf": alternatives},
    }
    special[Measurement] = _measurement(special)
    special[Workload] = _workload(special)
    return special


def _goal() -> Schema:
    short = [kind.value for kind in GoalKind if kind not in GOAL_LIMITS]
    within = [
        {
            "type": "object",
            "properties": {kind.value: _only(name, with_bound(schema_of(Decimal, {}), POSITIVE))},
            "required": [kind.value],
            "additionalProperties": False,
        }
        for kind, name in GOAL_LIMITS.items()
    ]
    return {"anyOf": [{"enum": short}, *within]}


def _only(name: str, schema: Schema) -> Schema:
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


def _measurement(special: dict[Any, Schema]) -> Schema:
    schema = object_schema(Measurement, special)
    properties = {"warmup" if name == "warmup_steps" else name: inner for name, inner in schema["properties"].items()}
    properties["warmup"] = {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 0}]}
    return {**schema, "properties": properties}


def _workload(special: dict[Any, Schema]) -> Schema:
    script = {"properties": {"task": {"const": Task.SCRIPT.value}}, "required": ["task"]}
    classification = {"properties": {"task": {"const": Task.SEQUENCE_CLASSIFICATION.value}}, "required": ["task"]}
    built_in = {
        "required": ["model", "dataset", "sequence_length"],
        "properties": {name: {"enum": [None, {}]} for name in SCRIPT_FIELDS},
    }
    return {
        **object_schema(Workload, special),
        "allOf": [
            {"if": script, "then": {"required": ["source", "entry_point"]}, "else": built_in},
            {"if": classification, "then": {"required": ["label_count"]}},
        ],
    }


def _point() -> Schema:
    return {
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in settings_types()},
        "patternProperties": {HYPERPARAMETER_PATTERN: SCALAR},
        "additionalProperties": False,
    }


def _matrix() -> Schema:
    def axis(value: Schema) -> Schema:
        return {"type": "array", "items": value, "minItems": 1, "uniqueItems": True}

    return {
        "type": "object",
        "properties": {name: axis({"$ref": f"#/$defs/{name}"}) for name in settings_types()},
        "patternProperties": {HYPERPARAMETER_PATTERN: axis(SCALAR)},
        "additionalProperties": False,
        "minProperties": 1,
    }


def _setting(name: str, kind: Any) -> Schema:
    if name == "instance":
        return {"enum": list(instance_types())}
    schema = schema_of(kind, _special())
    return with_bound(schema, SETTINGS_BOUNDS[name]) if name in SETTINGS_BOUNDS else schema


def _bind(schema: Schema, path: list[str], bound: Bound) -> None:
    *parents, last = ["warmup" if name == "warmup_steps" else name for name in path]
    for name in parents:
        inner = schema["properties"][name]
        schema = next(option for option in [inner, *inner.get("anyOf", [])] if "properties" in option)
    schema["properties"][last] = with_bound(schema["properties"][last], bound)
