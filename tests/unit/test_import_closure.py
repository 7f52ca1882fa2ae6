"""What programs import, found without importing it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from traindyno.bundle import REPO_ROOT
from traindyno.import_closure import OUR_PACKAGES, imported_files, imported_names

SOURCES = sorted(path for package in OUR_PACKAGES for path in (REPO_ROOT / package).rglob("*.py"))

MODULES = {
    ".".join(path.relative_to(REPO_ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCES
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "training/__init__.py": "",
        "training/main.py": (
            "import os\nfrom training import near\n\ndef run():\n    import training.late.module\n"
        ),
        "training/near.py": (
            "from traindyno.core.errors import (\n    TraindynoError,\n    Other,\n)\n"
        ),
        "training/late/__init__.py": (
            "from importlib import import_module\nMODULES = ['x', \"training.late.chosen\"]\n"
        ),
        "training/late/module.py": "",
        "training/late/chosen.py": (
            "from importlib.resources import files\nfiles(\"training.tables\") / 'a.json'\n"
        ),
        "training/late/other.py": "",
        "training/tables/__init__.py": "",
        "training/tables/a.json": "{}",
        "training/tables/code.py": "",
        "training/unused.py": "import training.main",
        "traindyno/__init__.py": "",
        "traindyno/core/__init__.py": "",
        "traindyno/core/errors.py": 'import torch\nNAME = "training.unused"\n',
        "traindyno/core/far.py": "",
        "torch/__init__.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_closure_has_modules_their_packages_their_imports_and_their_data(tree: Path) -> None:
    assert imported_files(["training.main"], tree) == {
        name: tree / name
        for name in (
            "traindyno/__init__.py",
            "traindyno/core/__init__.py",
            "traindyno/core/errors.py",
            "training/__init__.py",
            "training/late/__init__.py",
            "training/late/chosen.py",
            "training/late/module.py",
            "training/main.py",
            "training/near.py",
            "training/tables/__init__.py",
            "training/tables/a.json",
        )
    }


def test_the_parser_finds_the_same_imports() -> None:
    """In every module: a regular expression reads them, because the parser takes more than ten
    times as long.
    """
    assert SOURCES
    different = {
        path.relative_to(REPO_ROOT).as_posix(): ours(imported_names(text))
        ^ ours(parsed_names(text))
        for path in SOURCES
        for text in [path.read_text()]
        if ours(imported_names(text)) != ours(parsed_names(text))
    }
    assert different == {}


def parsed_names(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(names: Iterator[str]) -> set[str]:
    return MODULES & {*names}
