"""Whether one value is accepted by its field: the bounds of a suite's numbers, and known instance types."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from traindyno.core.documents.field_description import Bound, description_of, document_name
from traindyno.core.documents.problems import join_path, refusal, shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type
from traindyno.core.suite.settings import Settings, setting_descriptions


def check_bounds(part: Any, path: str = "") -> Iterator[Problem]:
    """All numbers of a dataclass and of those within it, each by its field's description."""
    for field in fields(part):
        value, description = getattr(part, field.name), description_of(field)
        where = join_path(path, document_name(field))
        if is_dataclass(value):
            yield from check_bounds(value, where)
        elif isinstance(value, Mapping):
            for name, part_of_it in value.items():
                if is_dataclass(part_of_it):
                    yield from check_bounds(part_of_it, join_path(where, name))
        elif description is not None and description.bound is not None and value is not None:
            yield from _check(where, value, description.bound)


def check_value(path: str, name: str, value: Any, kind: type = Settings) -> Iterator[Problem]:
    """One setting's value."""
    description = setting_descriptions(kind).get(name)
    if name == "instance":
        yield from check_instance_type(path, value)
    elif is_dataclass(value):
        yield from check_bounds(value, path)
    elif description is not None and description.bound is not None and value is not None:
        yield from _check(path, value, description.bound)


def check_instance_type(path: str, name: str) -> Iterator[Problem]:
    if find_instance_type(name) is None:
        expected = "a training instance type, local.cpu or local.gpu"
        yield Problem(path=path, message=refusal(f"got {shown(name)}", expected, close_instance_types(name)))


def _check(path: str, value: Any, bound: Bound) -> Iterator[Problem]:
    if not bound.accepts(value):
        yield Problem(path=path, message=f"got {shown(value) if isinstance(value, int) else value}, expected {bound}")
