"""The JSON Schema of the suite file, for editors: generated from the dataclasses that the file is read into."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from traindyno.core.documents.field_description import FieldDescription, description_of, document_name
from traindyno.core.documents.stored import JsonValue
from traindyno.core.instances.instance_types import instance_types
from traindyno.core.suite.checks.suite_check import NAME, NAME_CHARACTERS
from traindyno.core.suite.checks.workload_check import SCRIPT_FIELDS
from traindyno.core.suite.choices import GoalKind, Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.settings import (
    HYPERPARAMETER_PREFIX,
    LearningRate,
    Settings,
    setting_descriptions,
    setting_types,
)
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_converter import GOAL_LIMITS
from traindyno.core.suite.workload import Model, Tokenizer, Workload

Schema = dict[str, Any]

TITLE = "Traindyno suite"
HYPERPARAMETER_PATTERN = f"^{HYPERPARAMETER_PREFIX.replace('.', chr(92) + '.')}.+$"
PLAIN: dict[Any, Schema] = {
    Any: {},
    JsonValue: {},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    str: {"type": "string"},
    NoneType: {"type": "null"},
    Decimal: {"type": ["number", "string"], "pattern": r"^[-+]?[0-9]+(\.[0-9]+)?$"},
}


def suite_schema() -> Schema:
    schema = _object_schema(Suite, _special())
    properties = schema["properties"]
    properties["name"] = {"type": "string", "pattern": f"^{NAME.pattern}$", "maxLength": NAME_CHARACTERS}
    properties["training"] = properties["baseline"] = _point()
    properties["include"] = {"type": "array", "items": _point()}
    properties["exclude"] = {"type": "array", "items": {**_point(), "minProperties": 1}}
    properties["matrix"] = _matrix()
    properties["claims"] = {**properties["claims"], "anyOf": [{"type": ["string", "object", "null"]}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        **schema,
        "$defs": setting_schemas(),
    }


def setting_schemas(kind: type = Settings) -> dict[str, Schema]:
    """Setting → the schema of one value of it."""
    types = setting_types(kind)
    return {
        name: {"enum": list(instance_types()), "description": _text(description)}
        if name == "instance"
        else _described(schema_of(types[name], _special()), description)
        for name, description in setting_descriptions(kind).items()
    }


def schema_of(kind: Any, special: Mapping[Any, Schema]) -> Schema:
    """``special``: types whose document differs from their fields."""
    if kind in special or kind in PLAIN:
        return dict(special.get(kind) or PLAIN[kind])
    if get_origin(kind) in (Union, UnionType):
        return {"anyOf": [schema_of(part, special) for part in get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": schema_of(get_args(kind)[0], special)}
    if get_origin(kind) is Mapping:
        return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1], special)}
    if issubclass(kind, StrEnum):
        return {"enum": [member.value for member in kind]}
    assert is_dataclass(kind), f"a suite holds no {kind}"
    return _object_schema(kind, special)


def _object_schema(kind: Any, special: Mapping[Any, Schema]) -> Schema:
    hints = get_type_hints(kind)
    required = [document_name(field) for field in fields(kind) if _is_required(field)]
    schema: Schema = {
        "type": "object",
        "properties": {
            document_name(field): _described(schema_of(hints[field.name], special), description_of(field))
            for field in fields(kind)
        },
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        schema["description"] = " ".join(kind.__doc__.split())
    return schema


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _described(schema: Schema, description: FieldDescription | None) -> Schema:
    """The schema with the bounds and the help of the field."""
    if description is None:
        return schema
    if description.none_word is not None:
        typed = [part for part in schema["anyOf"] if part != PLAIN[NoneType]]
        schema = {"anyOf": [{"const": description.none_word}, *typed]}
    if description.bound is not None:
        bound = description.bound
        limits = {"exclusiveMinimum": bound.above, "minimum": bound.least, "maximum": bound.most}
        schema = {**schema, **{name: limit for name, limit in limits.items() if limit is not None}}
    return {**schema, "description": _text(description)}


def _text(description: FieldDescription) -> str:
    return description.meaning + (f" ({description.unit})" if description.unit else "")


def _special() -> dict[Any, Schema]:
    """Types with a short form or with alternatives of which one must be chosen."""
    learning_rate = _object_schema(LearningRate, {})
    model = {**_object_schema(Model, {}), "oneOf": [{"required": ["path"]}, {"required": ["config"]}]}
    alternatives = [{"required": ["path"]}, {"required": ["train_vocabulary_size"]}]
    special: dict[Any, Schema] = {
        Goal: _goal(),
        LearningRate: {"anyOf": [learning_rate["properties"]["base"], learning_rate]},
        Model: {"anyOf": [{"type": "string"}, model]},
        Tokenizer: {**_object_schema(Tokenizer, {}), "oneOf": alternatives},
    }
    special[Workload] = _workload(special)
    return special


def _goal() -> Schema:
    short = [kind.value for kind in GoalKind if kind not in GOAL_LIMITS]
    limits = _object_schema(Goal, {})["properties"]
    within = [
        _only(kind.value, _only(name, _without_null(limits[name])))
        for kind, names in GOAL_LIMITS.items()
        for name in names
    ]
    return {"anyOf": [{"enum": short}, *within]}


def _without_null(schema: Schema) -> Schema:
    (typed,) = (part for part in schema["anyOf"] if part != PLAIN[NoneType])
    return {**typed, **{name: value for name, value in schema.items() if name != "anyOf"}}


def _only(name: str, schema: Schema) -> Schema:
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


def _workload(special: dict[Any, Schema]) -> Schema:
    script = {"properties": {"task": {"const": Task.SCRIPT.value}}, "required": ["task"]}
    classification = {"properties": {"task": {"const": Task.SEQUENCE_CLASSIFICATION.value}}, "required": ["task"]}
    built_in = {
        "required": ["model", "dataset", "sequence_length"],
        "properties": {name: {"enum": [None, {}]} for name in SCRIPT_FIELDS},
    }
    return {
        **_object_schema(Workload, special),
        "allOf": [
            {"if": script, "then": {"required": ["source", "entry_point"]}, "else": built_in},
            {"if": classification, "then": {"required": ["label_count"]}},
        ],
    }


def _point() -> Schema:
    return {
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in setting_types()},
        "patternProperties": {HYPERPARAMETER_PATTERN: {}},
        "additionalProperties": False,
    }


def _matrix() -> Schema:
    def axis(value: Schema) -> Schema:
        return {"type": "array", "items": value, "minItems": 1, "uniqueItems": True}

    return {
        "type": "object",
        "properties": {name: axis({"$ref": f"#/$defs/{name}"}) for name in setting_types()},
        "patternProperties": {HYPERPARAMETER_PATTERN: axis({})},
        "additionalProperties": False,
    }
