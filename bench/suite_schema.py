"""`make schema`: the JSON Schema of the suite file, for editors, and the tables of its page.

Both are generated from the dataclasses that the file is read into.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from traindyno.core.documents.converter import DIGITS
from traindyno.core.documents.field_description import (
    Bound,
    FieldDescription,
    described_fields,
    description_of,
)
from traindyno.core.documents.stored import JsonValue
from traindyno.core.instances.instance_types import instance_types
from traindyno.core.run.settings import (
    HYPERPARAMETER_PREFIX,
    Adapter,
    LearningRate,
    SettingDescription,
    Settings,
    setting_descriptions,
    setting_types,
)
from traindyno.core.run.workload import FullRun, Model, Tokenizer, Workload
from traindyno.core.suite.checks.suite_check import NAME, NAME_CHARACTERS
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.feature import SuiteFeature
from traindyno.core.suite.goal import Goal, Pricing, SpotTerms
from traindyno.core.suite.suite import Confirm, JobOptions, Limits, Measurement, Preparation, Suite
from traindyno.core.suite.suite_file import ADAPTER, FULL_TRAINING, GOAL_LIMITS, sections_of
from traindyno.features import FEATURES

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
    Decimal: {"type": ["number", "string"], "pattern": f"^{DIGITS.pattern}$"},
}
SECTION = re.compile(r"(<!-- fields: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| field | values | default | meaning |\n|---|---|---|---|\n"
TYPE_NAMES = {
    int: "integer",
    float: "number",
    Decimal: "number, also as text",
    str: "text",
    bool: "`true`, `false`",
}
# Name of a table → the dataclasses whose described fields it lists, each with the path to its
# fields.
TABLES: dict[str, tuple[tuple[type, str], ...]] = {
    "workload": ((Workload, ""), (FullRun, "full_run.")),
    "preparation": ((Preparation, "preparation."),),
    "settings": ((Settings, ""), (Adapter, "adapter.")),
    "measurement": ((Measurement, ""), (Confirm, "confirm.")),
    "job": ((JobOptions, "job."),),
    "pricing": ((Pricing, "pricing."), (SpotTerms, "pricing.spot.TYPE.")),
    "limits": ((Limits, "limits."), (Suite, "")),
}


def file_schema(features: Sequence[SuiteFeature]) -> Schema:
    """What a person writes: ``api/suite_defaults.py`` completes it.

    Fields of the workload may stand at its top, and ``confirm`` too, and ``max_minutes`` in place
    of ``max_hours``.
    """
    schema = _object_schema(Suite, _special())
    properties = schema["properties"]
    del properties["features"]
    for section in sections_of(features):
        properties |= _object_schema(section, {})["properties"]
    properties["name"] = {
        "type": "string",
        "pattern": f"^{NAME.pattern}$",
        "maxLength": NAME_CHARACTERS,
    }
    point = _of_settings(dict)
    properties["training"] = properties["baseline"] = point
    properties["include"] = {"type": "array", "items": point}
    properties["exclude"] = {"type": "array", "items": {**point, "minProperties": 1}}
    properties["matrix"] = _of_settings(
        lambda value: {"type": "array", "items": value, "minItems": 1, "uniqueItems": True}
    )
    for name in (feature.name for feature in features if feature.file_shape):
        properties[name] = {**properties[name], "anyOf": [{"type": ["string", "object", "null"]}]}
    workload = {name: part for name, part in properties["workload"].items() if name != "required"}
    dataset = {"anyOf": [{"type": "string"}, *workload["properties"]["dataset"]["anyOf"]]}
    workload["properties"] = {**workload["properties"], "dataset": dataset}
    minutes = {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "the longest that the execution may take",
    }
    limits = {name: part for name, part in properties["limits"].items() if name != "required"}
    limits["properties"] = {**limits["properties"], "max_minutes": minutes}
    confirm = properties["measurement"]["properties"]["confirm"]
    completed = {
        **workload["properties"],
        **properties,
        "workload": workload,
        "limits": limits,
        "confirm": confirm,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        **{name: part for name, part in schema.items() if name != "required"},
        "properties": completed,
        "$defs": setting_schemas(),
    }


def setting_schemas() -> dict[str, Schema]:
    """Setting → the schema of one value of it."""
    types = setting_types()
    return {
        name: {"enum": list(instance_types()), "description": _text(description)}
        if name == "instance"
        else _described(schema_of(types[name], _special()), description)
        for name, description in setting_descriptions().items()
    }


def schema_of(kind: Any, special: Mapping[Any, Schema]) -> Schema:
    """The schema of a value of this type; ``special`` has types whose document differs from their
    fields.
    """
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
    required = [
        field.name for field in fields(kind) if MISSING is field.default is field.default_factory
    ]
    schema: Schema = {
        "type": "object",
        "properties": {
            field.name: _described(schema_of(hints[field.name], special), description_of(field))
            for field in fields(kind)
        },
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        schema["description"] = " ".join(kind.__doc__.split())
    return schema


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
    model = {
        **_object_schema(Model, {}),
        "oneOf": [{"required": ["path"]}, {"required": ["config"]}],
    }
    adapter = _object_schema(Adapter, {})
    targets = adapter["properties"]["targets"]
    adapter["properties"]["targets"] = {
        "anyOf": [{"type": "string"}, {name: targets.pop(name) for name in ("type", "items")}],
        **targets,
    }
    alternatives = [{"required": ["path"]}, {"required": ["train_vocabulary_size"]}]
    return {
        Goal: _goal(),
        ADAPTER: {"anyOf": [{"enum": [FULL_TRAINING, None]}, adapter]},
        LearningRate: {"anyOf": [learning_rate["properties"]["base"], learning_rate]},
        Model: {"anyOf": [{"type": "string"}, model]},
        Tokenizer: {**_object_schema(Tokenizer, {}), "oneOf": alternatives},
    }


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
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


def _of_settings(schema: Callable[[Schema], Schema]) -> Schema:
    """The schema of a mapping from settings; ``schema`` turns the schema of a setting's value into
    that of what the mapping has for it.
    """
    return {
        "type": "object",
        "properties": {name: schema({"$ref": f"#/$defs/{name}"}) for name in setting_types()},
        "patternProperties": {HYPERPARAMETER_PATTERN: schema({})},
        "additionalProperties": False,
    }


def with_tables(document: str, features: Sequence[SuiteFeature]) -> str:
    """The Markdown document with the text between ``<!-- fields: NAME -->`` and ``<!-- end -->``
    regenerated.
    """

    further = [(section, "") for section in sections_of(features)]
    tables = {**TABLES, "limits": (*TABLES["limits"], *further)}

    def section(marked: re.Match[str]) -> str:
        rows = "".join(
            row for kind, path in tables[marked["name"]] for row in field_rows(kind, path)
        )
        return f"{marked[1]}\n{HEAD}{rows}\n{marked[3]}"

    return SECTION.sub(section, document)


def field_rows(kind: Any, path: str = "") -> list[str]:
    """One row for each described field."""
    hints = get_type_hints(kind)
    return [
        f"| `{path}{field.name}` | {_values(hints[field.name], description)} | "
        f"{_default(field, description)} | {_meaning(description)} |\n"
        for field, description in described_fields(kind)
    ]


def _values(kind: Any, description: FieldDescription) -> str:
    inner = next(
        part
        for part in (get_args(kind) if isinstance(kind, UnionType) else (kind,))
        if part is not NoneType
    )
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        return ", ".join(f"`{member.value}`" for member in inner)
    named = _type_name(inner)
    words = [f"`{description.none_word}`"] if description.none_word else []
    bound = f", {_range(description.bound)}" if description.bound else ""
    return " or ".join([*words, f"{named}{bound}"])


def _range(bound: Bound) -> str:
    """The bound in a table: ``1 to 1,000,000`` where both ends are accepted."""
    if bound.least is None or bound.most is None:
        return str(bound)
    return f"{_grouped(bound.least)} to {_grouped(bound.most)}"


def _grouped(number: float) -> str:
    return f"{int(number) if number == int(number) else number:,}"


def _type_name(kind: Any) -> str:
    if kind is LearningRate:
        return "number or mapping"
    return "list" if get_origin(kind) is tuple else TYPE_NAMES.get(kind, "mapping")


def _default(field: Field[Any], description: FieldDescription) -> str:
    if description.default is not None:
        return description.default
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else "none"
    match field.default:
        case None | ():
            return f"`{description.none_word}`" if description.none_word else "none"
        case bool():
            return "`true`" if field.default else "`false`"
        case Enum():
            return f"`{field.default.value}`"
        case _:
            return str(field.default)


def _meaning(description: FieldDescription) -> str:
    parts = [description.meaning]
    if description.unit:
        parts.append(f"in {description.unit}")
    if isinstance(description, SettingDescription) and description.used_by:
        parts.append(
            f"only with strategy {' or '.join(f'`{strategy}`' for strategy in description.used_by)}"
        )
    return "; ".join(parts).replace("|", "\\|")


if __name__ == "__main__":
    schema = Path("docs/suite.schema.json")
    page = Path("docs/suite-file.md")
    schema.write_text(json.dumps(file_schema(FEATURES), indent=2) + "\n", encoding="utf-8")
    page.write_text(with_tables(page.read_text(encoding="utf-8"), FEATURES), encoding="utf-8")
