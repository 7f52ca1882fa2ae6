"""What runs in frozen images has no annotation that Python 3.8 can't evaluate."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_boundaries import MAY_IMPORT, REPO_ROOT, imported_modules, is_allowed

OWN = {
    f"{name.replace('.', '/')}.py"
    for name in MAY_IMPORT["traindyno/parent"]
    if name.startswith("traindyno.core")
}
FOLDERS = ("traindyno/parent", "traindyno/callbacks")
FILES = sorted(
    {
        *OWN,
        *(
            str(p.relative_to(REPO_ROOT))
            for name in FOLDERS
            for p in (REPO_ROOT / name).glob("*.py")
        ),
    }
)
NEW_GENERICS = {"dict", "frozenset", "list", "set", "tuple", "type"}


def later_syntax(text: str) -> Iterator[str]:
    tree = ast.parse(text, feature_version=(3, 8))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    standard = {
        alias.name
        for node in imports
        if str(node.module).startswith("collections")
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name)) if name in NEW_GENERICS | standard:
                yield ast.unparse(node)
            case ast.BinOp(op=ast.BitOr(), right=ast.Constant(value=None)):
                yield ast.unparse(node)


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_frozen_images_has_annotations_of_its_python(file: str) -> None:
    assert not list(later_syntax(Path(REPO_ROOT, file).read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", sorted(OWN))
def test_a_file_of_the_core_in_frozen_images_imports_their_modules_only(file: str) -> None:
    names = imported_modules(Path(REPO_ROOT, file))
    assert [
        name for name in sorted(names) if not is_allowed(name, MAY_IMPORT["traindyno/parent"])
    ] == []


def test_later_annotations_are_found() -> None:
    text = (
        "from collections.abc import Sequence\n"
        "def f(a: int | None, b: list[int], c: Sequence[int]): ..."
    )
    assert sorted(later_syntax(text)) == ["Sequence[int]", "int | None", "list[int]"]
