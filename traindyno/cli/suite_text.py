"""Read a suite or another input file as YAML (or JSON) text, with the line of each value for messages."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from traindyno.core.errors import DocumentInvalid, TraindynoError

YAML_1_1_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("float", "bool", "timestamp")}
FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$")
BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")
LAST_PART = re.compile(r"(\.?[^.\[\]]+|\[\d+\])$")
Value = TypeVar("Value")


class SuiteUnreadable(TraindynoError):
    """The file can't be read, or its text is no YAML mapping."""


class InputFileInvalid(TraindynoError):
    """A file named on the command line has problems; each line says where, what, and what would be accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteText:
    """A suite document and, for each path in it such as ``matrix.instance_count[1]``, its line (from 1)."""

    source: Path
    document: dict[str, Any]
    line_of: Mapping[str, int]

    def place(self, path: str) -> str:
        """``file:line`` of a path, or of the nearest thing around it that is in the file."""
        while path and path not in self.line_of:
            path = LAST_PART.sub("", path)
        return f"{self.source}:{self.line_of.get(path, 1)}"


class _Loader(yaml.SafeLoader):
    """YAML 1.2's scalars (``5e-5`` is a number; ``on``, ``no`` and dates are text); a repeated key is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                problem = f"the key {key.value!r} is repeated"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in YAML_1_1_SCALARS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", BOOLEAN, list("tTfF"))


def read_suite_text(source: Path, *, fields: str = "name, goal, workload, matrix…") -> SuiteText:
    """Raise ``SuiteUnreadable`` for a text that is no YAML mapping; the message names the expected ``fields``."""
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteUnreadable(f"{source}: can't be read as UTF-8 text: {error}") from error
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        document = loader.construct_document(node) if node else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SuiteUnreadable(f"{source}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise SuiteUnreadable(f"{source}: not valid YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(node, yaml.MappingNode):
        found = "nothing" if document is None else f"a {type(document).__name__}"
        raise SuiteUnreadable(f"{source}:1: expected a mapping with {fields}; found {found}")
    return SuiteText(source=source, document=document, line_of=dict(_lines(node, "")))


def read_input_file(path: Path, parse: Callable[[dict[str, Any]], Value], *, fields: str) -> Value:
    """Read the file and parse it; ``fields`` names the expected top-level keys, for the message."""
    text = read_suite_text(path, fields=fields)
    try:
        return parse(text.document)
    except DocumentInvalid as error:
        lines = [f"{text.place(problem.path)}: {problem}" for problem in error.problems]
        raise InputFileInvalid("\n".join(lines)) from error


def _lines(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = f"{path}.{key.value}" if path else str(key.value)
            yield inner, key.start_mark.line + 1
            yield from _lines(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            inner = f"{path}[{index}]"
            yield inner, value.start_mark.line + 1
            yield from _lines(value, inner)
