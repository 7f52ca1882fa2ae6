"""The names and signatures that people's scripts call are those of a list, which a change has to
edit on purpose.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPO_ROOT = Path(__file__).parents[3]
CALLBACKS = REPO_ROOT / "traindyno" / "callbacks"
# What scripts import, and where the objects that they get from it are defined.
MODULES = ("__init__", "checkpoints", "hf_trainer", "lightning", "log", "spans")
LISTED = (REPO_ROOT / "tests" / "data" / "callbacks_interface.txt").read_text().splitlines()
SPECIAL = ("__init__", "__enter__", "__exit__")
# What only this project and the libraries call; it may change with them.
FOR_US = {
    "checkpoints": {
        "check_files",
        "check_log",
        "describe_files",
        "problem_of",
        "measure_log",
        "remove_marker",
        "write_marker",
        "written_bytes",
    },
    "hf_trainer": {
        "unit_of_samples",
        "processes_that_share_rows",
        "samples_of_batches",
        "is_prompt",
    },
    "log": {
        "step_log_of_this_process",
        *(
            f"StepLogger.{name}"
            for name in (
                "__init__",
                "measure_with",
                "observe_with",
                "begin_step",
                "end_step",
                "note_batch",
                "share_rows",
            )
        ),
        *(
            f"StepLogger.{name}"
            for name in (
                "add_phase",
                "describe",
                "phase_ended",
                "close_window",
                "ends_early",
                "error",
            )
        ),
        *(f"StepLogger.{name}" for name in ("open", "failed", "close", "steps_of_this_process")),
        *(f"StepLogger.{name}" for name in ("begin_training", "end_training")),
    },
    "spans": {"CheckpointPhase.__init__", "Phase.__init__", "Step.__init__", "whole_counts"},
}
HOOK = re.compile(r"StepLogCallback\.on_\w+")


def test_names_and_signatures_for_scripts_are_the_listed_ones() -> None:
    """If this fails: a name that is gone or a signature that has changed breaks scripts.

    Keep the old form working, or edit the list and say in CHANGELOG.md what a script has to change.
    A further name or option is an edit of the list.
    """
    interface = {
        line: name
        for module in MODULES
        for name, line in interface_of(module)
        if not is_for_us(module, name)
    }
    assert [line for line in LISTED if line not in interface] == []
    assert [line for line in interface if line not in LISTED] == [], (
        "for scripts: list it; else: FOR_US"
    )


def test_all_names_for_this_project_only_exist() -> None:
    names = {(module, name) for module in MODULES for name, _ in interface_of(module)}
    assert {(module, name) for module, listed in FOR_US.items() for name in listed} <= names


def is_for_us(module: str, name: str) -> bool:
    return name in FOR_US.get(module, ()) or HOOK.fullmatch(name) is not None


def interface_of(module: str) -> Iterator[tuple[str, str]]:
    """Names with their lines, by the source: the integrations import libraries that are not
    installed everywhere.
    """
    for node in ast.parse((CALLBACKS / f"{module}.py").read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, f"{module}: {signature(node)}"
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield (
                node.name,
                f"{module}: class {node.name}({', '.join(map(ast.unparse, node.bases))})",
            )
            for name, text in members(node):
                yield f"{node.name}.{name}", f"{module}: {node.name}.{text}"
        elif isinstance(node, ast.Assign) and module == "__init__":
            yield ast.unparse(node.targets[0]), f"{module}: {ast.unparse(node)}"


def members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Methods, properties, and the attributes that the constructor sets."""
    for statement in node.body:
        if not isinstance(statement, ast.FunctionDef):
            continue
        if statement.name in SPECIAL or not statement.name.startswith("_"):
            decorators = "".join(
                f"@{ast.unparse(decorator)} " for decorator in statement.decorator_list
            )
            yield statement.name, f"{decorators}{signature(statement)}"
        if statement.name == "__init__":
            yield from ((name, name) for name in sorted(attributes(statement)))


def attributes(constructor: ast.FunctionDef) -> set[str]:
    names = {
        node.attr
        for node in ast.walk(constructor)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return {name for name in names if not name.startswith("_")}


def signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def test_all_calls_of_the_page_for_scripts_are_listed() -> None:
    page = (REPO_ROOT / "docs" / "own-script.md").read_text()
    code = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    calls = {f"log: StepLogger.{name}(" for name in re.findall(r"\bstep_log\.(\w+)\(", page)}
    calls |= {f"checkpoints: {name}(" for name in re.findall(r"\bcheckpoints\.(\w+)\(", code)}
    assert {
        "log: StepLogger.step(",
        "log: StepLogger.evaluation(",
        "checkpoints: mark_complete(",
    } <= calls
    assert [
        call for call in sorted(calls) if not any(line.startswith(call) for line in LISTED)
    ] == []
