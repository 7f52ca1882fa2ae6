"""Messages say what is wrong first and list what is accepted last."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from tests.unit.suites import small_document
from traindyno.core.documents.problems import REMOVED, join_path, shown
from traindyno.core.errors import SuiteInvalid
from traindyno.core.run.settings import setting_types
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import (
    read_stored_suite,
    sections_of,
    stored_suite,
    structure_suite,
)
from traindyno.features import FEATURES

ROOT = Path(__file__).parents[4]
# One of these is wrong for every type.
VALUES: tuple[Any, ...] = ("?", 3.5, [True])
BEGIN_AND_END = re.compile(
    r'(got .+?|unknown field ".+?")(, expected|: did you mean .+\? Expected) (.+)'
)
FOUND_AFTER_ACCEPTED = re.compile(r"\b[Ee]xpected\b.*\b(got|found)\b")
ONLY_ACCEPTED = re.compile(r"(^|^[^ ]*: )expected ")


def suite_fields(kind: type, path: str = "") -> Iterator[str]:
    hints = get_type_hints(kind)
    for field in fields(kind):
        where = join_path(path, field.name)
        parts = [
            part
            for part in (get_args(hints[field.name]) or [hints[field.name]])
            if part is not NoneType
        ]
        yield where
        if (
            len(parts) == 1
            and is_dataclass(parts[0])
            and parts[0] is not Goal
            and isinstance(parts[0], type)
        ):
            yield from suite_fields(parts[0], where)


PATHS = [
    *(
        path
        for kind in (Suite, *sections_of(FEATURES))
        for path in suite_fields(kind)
        if path != "features"
    ),
    *(f"training.{name}" for name in setting_types()),
]


def problems_at(path: str, value: Any) -> list[str]:
    """Of form: the content is not checked."""
    document: dict[str, Any] = {**small_document(), "?": None}
    *sections, last = path.split(".")
    place = document
    for section in sections:
        inner = place.get(section)
        place[section] = place = dict(inner) if isinstance(inner, dict) else {}
    place[last] = value
    try:
        structure_suite(document, FEATURES)
    except SuiteInvalid as error:
        return [problem.message for problem in error.problems if problem.path == path]
    return []


@pytest.mark.parametrize("path", PATHS)
def test_message_about_a_field_begins_with_the_given_value(path: str) -> None:
    messages = {shown(value): problems_at(path, value) for value in VALUES}
    assert any(messages.values())
    for given, told in messages.items():
        for message in told:
            form = BEGIN_AND_END.fullmatch(message)
            assert form, message
            assert form[1] == f"got {given}"
            assert "got" not in form[3]


@pytest.mark.parametrize(
    "path",
    [
        "scaling",
        "pricing.regions",
        "training.prefetch_factor",
        "matrix.prefetch_factor",
        "measurement.probes",
        "training_plans",
    ],
)
def test_a_field_of_earlier_versions_is_to_be_deleted(path: str) -> None:
    name = path.rpartition(".")[2]
    assert problems_at(path, 1) == [f"the field {name} was removed; {REMOVED[name]}"]


def test_a_stored_suite_of_earlier_code_is_read_without_its_removed_fields() -> None:
    suite = parse_suite(small_document())
    document = stored_suite(suite)
    measurement = {**document["measurement"], "probes": True}
    earlier = {**document, "measurement": measurement, "training_plans": {}}
    assert read_stored_suite(earlier) == suite


def texts(file: Path) -> Iterator[str]:
    """All texts of a module; the values of an f-string are left out."""
    tree = ast.parse(file.read_text())
    inner = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.value


@pytest.mark.parametrize("package", ["traindyno/core", "traindyno/sagemaker"])
def test_no_message_begins_with_the_accepted_values(package: str) -> None:
    texts_of_package = {text for file in (ROOT / package).rglob("*.py") for text in texts(file)}
    assert len(texts_of_package) > 100
    assert [
        text
        for text in texts_of_package
        if FOUND_AFTER_ACCEPTED.search(text) or ONLY_ACCEPTED.search(text)
    ] == []
