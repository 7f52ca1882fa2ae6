"""Dataclasses to DynamoDB items and back: numbers are Decimal, and attributes that are None or
empty are omitted.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import Any, TypeVar

from cattrs import Converter
from cattrs.errors import BaseValidationError

from traindyno.core.documents.problems import problems_of
from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.job import AttemptOwner, Job, owner_document, parse_owner
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.suite import Run

Row = TypeVar("Row")


class RowUnreadable(TraindynoError):
    """A row of the table was not written by this version of the lab."""


def attributes_of(row: object) -> dict[str, Any]:
    """Every attribute of the row that has a value; DynamoDB takes neither floats nor empty sets."""
    attributes: dict[str, Any] = _converter().unstructure(row)
    return {
        name: value for name, value in attributes.items() if value not in (None, (), [], {}, set())
    }


def attribute(value: Any) -> Any:
    """One value as DynamoDB takes it."""
    return _converter().unstructure(value)


def read_row(item: Mapping[str, Any], kind: type[Row], **known: Any) -> Row:
    """A row of the table from its item. Attributes without a field are ignored.

    ``known`` has the fields that come from the item's keys.
    """
    try:
        return _converter().structure({**item, **known}, kind)
    except BaseValidationError as error:
        problems = "; ".join(str(problem) for problem in problems_of(error, ""))
        raise RowUnreadable(
            f"row {item.get('pk')}, {item.get('sk')} was written by another version of the lab: "
            f"{problems}; in the local cloud, start again with: traindyno local down --erase"
        ) from error


@cache
def _converter() -> Converter:
    converter = Converter()
    # DynamoDB can't store NaN and infinities.
    converter.register_unstructure_hook(
        float, lambda value: Decimal(str(value)) if isfinite(value) else None
    )
    converter.register_structure_hook(Decimal, lambda value, _: Decimal(value))
    converter.register_structure_hook(float, lambda value, _: float(value))
    for kind in (Run, Job, DataPreparation, AttemptOwner):
        converter.register_unstructure_hook(kind, lambda owner: json.dumps(owner_document(owner)))
    converter.register_structure_hook(AttemptOwner, lambda text, _: parse_owner(json.loads(text)))
    return converter
