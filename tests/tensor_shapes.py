"""Reads the shapes of tensors that the docstrings of ``training`` give.

The form is in training/__init__.py.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TRAINING = Path(__file__).parents[1] / "training"
TENSORS = {"Tensor", "DTensor", "NDArray"}
BATCH = "Batch"  # a dictionary: its shapes are said once, where it is defined
ANY = "[...]"
SHAPE = r"\[(?:\.\.\.|(?:[A-Z]|\d+)(?:, (?:[A-Z]|\d+))*)?\]"
SHAPES = rf"{SHAPE}(?:(?:,|,? or) {SHAPE})*"
# ``name`` [B, L] in a sentence, or name: [B, L] below Args
OF_PARAMETER = re.compile(rf"(?:``|^ +)(\w+)(?:``\s+|: )({SHAPES})", re.MULTILINE)
RETURNED = re.compile(r"\breturns\b((?:\[\.\.\.\]|[^.;])*)", re.IGNORECASE)


Definition = tuple[str, ast.FunctionDef, list[ast.Module | ast.ClassDef]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function that takes or gives tensors.

    Its own text is its docstring, or that of the protocol's same method.
    """

    file: Path
    name: str
    own_text: str
    text_around: str

    @property
    def of_parameters(self) -> dict[str, list[str]]:
        """What the function's own text says of a parameter; else the text around it, which may say
        alternatives.
        """
        own: dict[str, list[str]] = {}
        around: dict[str, list[str]] = {}
        for said, text in ((own, self.own_text), (around, self.text_around)):
            for name, shapes in OF_PARAMETER.findall(text):
                said.setdefault(name, []).extend(re.findall(SHAPE, shapes))
        return {**around, **own}

    @property
    def returned(self) -> list[str]:
        match = RETURNED.search(self.own_text)
        return re.findall(SHAPE, OF_PARAMETER.sub("", match.group(1))) if match else []


def fit(
    shapes: list[str], dimensions: tuple[int, ...], sizes: Mapping[str, int]
) -> dict[str, int] | None:
    """The sizes of the letters, with those that the first fitting shape adds; None if no shape
    fits.
    """
    for shape in shapes:
        names = re.findall(r"\w+", shape)
        known = dict(sizes)
        if shape == ANY:
            return known
        if len(names) == len(dimensions) and all(
            size == (int(name) if name.isdigit() else known.setdefault(name, size))
            for name, size in zip(names, dimensions, strict=True)
        ):
            return known
    return None


@cache
def functions() -> list[Function]:
    """All functions in the rooms of ``training`` whose annotations name a tensor."""
    trees = {file: ast.parse(file.read_text()) for file in sorted(TRAINING.glob("*/*.py"))}
    tensors = _with_aliases(trees.values())
    protocols = {
        _call(node): ast.get_docstring(node) or ""
        for tree in trees.values()
        for _, node, around in _definitions(tree)
        if isinstance(around[-1], ast.ClassDef) and "Protocol" in map(ast.unparse, around[-1].bases)
    }
    return [
        Function(
            file=file,
            name=name,
            own_text=ast.get_docstring(node) or protocols.get(_call(node), ""),
            text_around="\n".join(ast.get_docstring(definition) or "" for definition in around),
        )
        for file, tree in trees.items()
        for name, node, around in _definitions(tree)
        if any(tensors & set(_names(annotation)) for annotation in _annotations(node))
    ]


def _with_aliases(trees: Iterable[ast.Module]) -> set[str]:
    """Names of tensor types, with those that a module makes of them, such as ``Mask =
    NDArray[...]``.
    """
    tensors = set(TENSORS)
    aliases = [
        statement for tree in trees for statement in tree.body if isinstance(statement, ast.Assign)
    ]
    for _ in aliases:  # an alias may be of another one
        for alias in aliases:
            name = ast.unparse(alias.targets[0])
            if name != BATCH and not name.isupper() and tensors & set(_names(alias.value)):
                tensors.add(name)
    return tensors


def _definitions(tree: ast.Module) -> Iterator[Definition]:
    """Each function with its qualified name, and the module and classes that it is in."""
    return _within(tree, "", [tree])


def _within(
    node: ast.AST, prefix: str, around: list[ast.Module | ast.ClassDef]
) -> Iterator[Definition]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child, around
            yield from _within(child, f"{prefix}{child.name}.<locals>.", around)
        elif isinstance(child, ast.ClassDef):
            yield from _within(child, f"{prefix}{child.name}.", [*around, child])
        else:
            yield from _within(child, prefix, around)


def _call(node: ast.FunctionDef) -> tuple[str, ...]:
    """A method's name and parameters: a class that has the method implements the protocol's."""
    return node.name, *(arg.arg for arg in node.args.args)


def _annotations(node: ast.FunctionDef) -> Iterator[ast.expr]:
    arguments = node.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    yield from (
        argument.annotation
        for argument in every
        if argument is not None and argument.annotation is not None
    )
    if node.returns is not None:
        yield node.returns


def _names(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
