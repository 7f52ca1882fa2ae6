"""The tables of fields in docs/suite-file.md, made from the descriptions of the fields.

`python -m traindyno.core.suite.field_tables`, which is `make schema`, writes them and docs/suite.schema.json.
"""

import json
import re
from dataclasses import MISSING, Field
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from traindyno.core.documents.field_description import FieldDescription, described_fields, document_name
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.pricing import PlanTerms, Pricing, SpotTerms
from traindyno.core.suite.schema import suite_schema
from traindyno.core.suite.settings import LearningRate, SettingDescription, Settings
from traindyno.core.suite.suite import JobOptions, Limits, Measurement, Preparation, Scaling, Suite
from traindyno.core.suite.workload import FullRun, Workload

SECTION = re.compile(r"(<!-- fields: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| field | values | default | meaning |\n|---|---|---|---|\n"
TYPE_NAMES = {int: "integer", float: "number", Decimal: "number", str: "text", bool: "`true`, `false`"}
# Name of a table → the dataclasses whose described fields it lists, each with the path to its fields.
TABLES: dict[str, tuple[tuple[type, str], ...]] = {
    "workload": ((Workload, ""), (FullRun, "full_run.")),
    "preparation": ((Preparation, "preparation."),),
    "settings": ((Settings, ""),),
    "measurement": ((Measurement, ""),),
    "job": ((JobOptions, "job."),),
    "pricing": (
        (Pricing, "pricing."),
        (SpotTerms, "pricing.spot.TYPE."),
        (PlanTerms, "pricing.training_plan.TYPE."),
    ),
    "scaling": ((Scaling, "scaling."),),
    "limits": ((Limits, "limits."), (Suite, "")),
}


class UnknownTable(ValueError):
    """The document contains no table, or a table name that does not exist."""


def with_tables(document: str) -> str:
    """The Markdown document with the text between ``<!-- fields: NAME -->`` and ``<!-- end -->`` regenerated.

    Raises UnknownTable.
    """
    if SECTION.search(document) is None:
        raise UnknownTable(f"found no table, expected <!-- fields: NAME --> with one of {', '.join(TABLES)}")
    return SECTION.sub(lambda found: f"{found[1]}\n{field_table(found['name'])}\n{found[3]}", document)


def field_table(name: str) -> str:
    """A Markdown table; raises UnknownTable."""
    if name not in TABLES:
        raise UnknownTable(f"no table has the name {name}, expected one of {', '.join(TABLES)}")
    return HEAD + "".join(row for kind, path in TABLES[name] for row in field_rows(kind, path))


def field_rows(kind: Any, path: str = "") -> list[str]:
    """One row for each described field."""
    hints = get_type_hints(kind)
    return [
        f"| `{path}{document_name(field)}` | {_values(hints[field.name], description)} | {_default(field, description)}"
        f" | {_meaning(description)} |\n"
        for field, description in described_fields(kind)
    ]


def _values(kind: Any, description: FieldDescription) -> str:
    inner = next(part for part in (get_args(kind) if isinstance(kind, UnionType) else (kind,)) if part is not NoneType)
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        return ", ".join(f"`{member.value}`" for member in inner)
    named = _type_name(inner)
    words = [f"`{description.none_word}`"] if description.none_word else []
    bound = f", {description.bound}" if description.bound else ""
    return " or ".join([*words, f"{named}{bound}"])


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
        parts.append(f"only with strategy {_strategies(description.used_by)}")
    return "; ".join(parts).replace("|", "\\|")


def _strategies(strategies: tuple[Strategy, ...]) -> str:
    return " or ".join(f"`{strategy}`" for strategy in strategies)


if __name__ == "__main__":
    schema, page = Path("docs/suite.schema.json"), Path("docs/suite-file.md")
    schema.write_text(json.dumps(suite_schema(), indent=2) + "\n", encoding="utf-8")
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
