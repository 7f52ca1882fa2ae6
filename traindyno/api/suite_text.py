"""Read a suite or another input file as YAML (or JSON) text, with the line of each value for
messages.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from traindyno.core.documents.extent import MOST_DEPTH, MOST_VALUES
from traindyno.core.documents.problems import close_to, refusal
from traindyno.core.errors import DocumentInvalid, TraindynoError

YAML_1_1_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "timestamp")}
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F]+)$")
FLOAT = re.compile(r"[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)$")
BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")
YAML_TAG = "tag:yaml.org,2002:"
PLAIN_TAGS = {"str", "int", "float", "bool", "null", "seq", "map", "merge"}
MOST_BYTES = 10 * 2**20
SUITE_FIELDS = "task, model, dataset, matrix…"
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
LAST_PART = re.compile(r"(\.?[^.\[\]]+|\[\d+\])$")
Value = TypeVar("Value")
# Text that YAML 1.2 reads as a number, and PyYAML's writer, which knows 1.1, leaves without quotes.
LOOKS_LIKE_A_NUMBER = re.compile(r"[-+.]?\d[\d.eExXoO+\-_a-fA-F]*")


class SuiteUnreadable(TraindynoError):
    """The file can't be read, or its text is no YAML mapping."""


class InputFileInvalid(TraindynoError):
    """A file named on the command line has problems; each line says where, what, and what would be
    accepted.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteText:
    """A suite document and, for each path in it such as ``matrix.instance_count[1]``, its line
    (from 1).
    """

    source: Path
    document: dict[str, Any]
    line_of: Mapping[str, int]

    def place(self, path: str) -> str:
        """Place of a path, ``file:line``.

        A path that is not in the file has the place of the nearest enclosing value.
        """
        while path and path not in self.line_of:
            path = LAST_PART.sub("", path)
        return f"{self.source}:{self.line_of.get(path, 1)}"


class _Loader(yaml.SafeLoader):
    """Scalars of YAML 1.2: ``5e-5`` is a number, ``on``, ``0777``, ``1:30`` and dates are text.

    No key is repeated.

    A document that is nested too deeply, or too large with its aliases written out, is refused.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012  (so does PyYAML)
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in YAML_1_1_SCALARS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._count = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise _error(f"more than {MOST_DEPTH} levels", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        self._count += 1  # the parser is slow: the rest of a text that is too long is not parsed
        if self._count > MOST_VALUES:
            raise _too_many_values(self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (
            ValueError,
            KeyError,
        ) as error:  # such as ``!!int word``, or an integer of more than 4300 digits
            raise _error(
                f"{node.value!r:.60} is not a value of type {node.tag.removeprefix(YAML_TAG)}",
                node.start_mark,
            ) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _error("a key is a list or a mapping; accepted: text", key.start_mark)
            if key.value in seen:
                raise _error(f"the key {key.value!r} is repeated", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _error(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def _too_many_values(mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return _error(f"more than {MOST_VALUES} values, with aliases written out", mark)


def _check_nodes(root: yaml.Node) -> None:
    """Raises for a document that is too large, counting the content of an alias each time, or with
    unusable text.
    """
    waiting = [root]
    count = 0
    while waiting:
        node = waiting.pop()
        count += 1
        if count > MOST_VALUES:
            raise _too_many_values(root.start_mark)
        if node.tag.removeprefix(YAML_TAG) not in PLAIN_TAGS:
            raise _error(f"the tag {node.tag} is not one of plain YAML", node.start_mark)
        if isinstance(node, yaml.ScalarNode) and UNSTORABLE.search(node.value):
            raise _error("the text contains NUL or a lone surrogate", node.start_mark)
        if isinstance(node, yaml.MappingNode):
            waiting += [inner for pair in node.value for inner in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", INTEGER, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", BOOLEAN, list("tTfF"))


def read_suite_text(source: Path, *, fields: str = SUITE_FIELDS) -> SuiteText:
    """Raise ``SuiteUnreadable`` for a text that is no YAML mapping; the message names the expected
    ``fields``.
    """
    return parse_suite_text(_read(source, fields), source, fields=fields)


def parse_suite_text(text: str, source: Path, *, fields: str = SUITE_FIELDS) -> SuiteText:
    """Parse the text of a suite file that is read already."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            _check_nodes(node)
        document = loader.construct_document(node) if node else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SuiteUnreadable(f"{source}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise SuiteUnreadable(f"{source}: not valid YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(node, yaml.MappingNode):
        kind = "nothing" if document is None else f"a {type(document).__name__}"
        raise SuiteUnreadable(f"{source}:1: found {kind}; expected a mapping with {fields}")
    return SuiteText(source=source, document=document, line_of=dict(_lines(node, "")))


def read_input_file(path: Path, parse: Callable[[dict[str, Any]], Value], *, fields: str) -> Value:
    """Read the file and parse it; ``fields`` names the expected top-level keys, for the message."""
    text = read_suite_text(path, fields=fields)
    try:
        return parse(text.document)
    except DocumentInvalid as error:
        lines = [f"{text.place(problem.path)}: {problem}" for problem in error.problems]
        raise InputFileInvalid("\n".join(lines)) from error


def _read(source: Path, fields: str) -> str:
    expected = f"expected a YAML file with {fields}"
    try:
        with source.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise SuiteUnreadable(f"{source}: more than {MOST_BYTES // 2**20} MiB of text")
        return content.decode("utf-8")
    except OSError as error:
        is_lost = isinstance(error, FileNotFoundError)
        beside = [path.name for path in source.parent.glob("*")] if is_lost else []
        meant = close_to(source.name, beside)
        problem = f"{source}: can't be read: {error.strerror or error}"
        raise SuiteUnreadable(
            refusal(problem, expected.removeprefix("expected "), meant)
        ) from error
    except ValueError as error:  # not UTF-8, or a path with NUL
        raise SuiteUnreadable(
            f"{str(source)!r}: can't be read as UTF-8 text: {error}; {expected}"
        ) from error


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


class _Dumper(yaml.SafeDumper):
    """Quotes text that the reader of suites would read as a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if LOOKS_LIKE_A_NUMBER.fullmatch(text) else None
    ),
)


def write_yaml(value: Any, **style: Any) -> str:
    """Text that ``parse_suite_text`` reads as ``value``.

    ``style`` is passed to PyYAML's writer.
    """
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, **style)
    return text
