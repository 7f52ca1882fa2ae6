"""One cheap walk over what pages and notebooks show: code parses and imports, figures exist,
commands and their options too, suites have the fields of a suite. Nothing runs; tests/local runs
it.
"""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.notebook_cells import code_cells
from tests.unit.cli.test_bad_values import leaves
from tests.unit.slices.test_scaling import page_of
from tests.unit.suites import small_document
from tests.unit.test_notebooks import NOTEBOOKS, suite_of
from traindyno.api.suite_text import parse_suite_text
from traindyno.cli.main import commands
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted(ROOT.glob("docs/**/*.md")) if "decisions" not in path.parts),
]
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (traindyno .*)$", re.MULTILINE)
INLINE = re.compile(r"`(traindyno [^`]*)`")
PLACEHOLDER = re.compile(r"…|\.\.\.|\[")
# These import the library whose callback they are.
CALLBACKS = ("traindyno.callbacks.hf_trainer", "traindyno.callbacks.lightning")
SECTIONS = {"workload", "matrix", "goal", "limits", "measurement", "training", "search"}
COMMANDS = {
    (page.name, line)
    for page in PAGES
    for pattern in (INDENTED, INLINE)
    for line in pattern.findall(page.read_text(encoding="utf-8"))
}


def blocks(language: str) -> list[Any]:
    return [
        pytest.param(page.name, text, id=f"{page.stem}-{index}")
        for page in PAGES
        for index, (_, named, text) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if named == language
    ]


def imports_of(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, None) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), name.name) for name in node.names)


def check_code(text: str, place: str) -> None:
    """It parses, and what it imports of this repository is there."""
    for module, name in imports_of(ast.parse(text.replace(", ...)", ")"), place)):
        if module.split(".")[0] in {"traindyno", "training", "infra", "localcloud", "experiments"}:
            assert has_name(module, name), f"{place}: {module} has no {name}"


def has_name(module: str, name: str | None) -> bool:
    if module in CALLBACKS:
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        return re.search(rf"^(class|def) {name}\b", source, re.MULTILINE) is not None
    imported = importlib.import_module(module)
    return name is None or hasattr(imported, name)


@pytest.mark.parametrize(("page", "text"), blocks("python"))
def test_python_on_a_page_parses_and_imports(page: str, text: str) -> None:
    check_code(text, page)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_imports_and_names_figures_of_its_report(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notebook.parent)
    code = "\n".join(code_cells(notebook))
    check_code(code, notebook.name)
    page = page_of(suite_of(notebook).suite)
    figures = re.findall(r'\.figure\("(\w+)"\)', code)
    assert figures
    for figure in figures:
        section = page.partition(f'id="{figure}"')[2].partition("</section>")[0]
        assert "<svg" in section, f"{notebook.name}: {figure} draws nothing"


@pytest.mark.parametrize(("page", "text"), blocks("yaml"))
def test_yaml_on_a_page_has_the_fields_of_a_suite(page: str, text: str) -> None:
    document = parse_suite_text(text, Path(page)).document
    if not document.keys() & SECTIONS:
        return
    with pytest.raises(SuiteInvalid) as refused:
        parse_suite({**small_document(), **document, "no_field": 1})
    unknown = [
        str(problem) for problem in refused.value.problems if "unknown field" in problem.message
    ]
    known_short_form = {"task", "model", "dataset", "text_column", "label_column"}
    assert [message for message in unknown if message.split(":")[0] not in known_short_form] == [
        message for message in unknown if message.startswith("no_field")
    ]


@pytest.mark.parametrize(("page", "line"), sorted(COMMANDS))
def test_a_command_on_a_page_has_its_options(page: str, line: str) -> None:
    _, *words = shlex.split(PLACEHOLDER.split(line)[0], comments=True)
    known = dict(leaves(typer.main.get_command(commands)))
    path = next((name for name in known if tuple(words[: len(name)]) == name), None)
    if path is None:
        is_general = not words or words[0].startswith("-") or words[0].isupper()
        assert is_general or (words[0],) in {name[:1] for name in known}, page
        return
    parameters = known[path].params
    options = {
        option
        for parameter in parameters
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert given <= options | {"--help"}, page
