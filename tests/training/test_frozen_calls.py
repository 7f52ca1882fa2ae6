"""The frozen scripts call the libraries that can't be installed here as their publishers documented
them.
"""

import ast
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from experiments.gptj_parallel import arguments as gptj_arguments
from tests.training.jobs import REPO_ROOT

SIGNATURES = REPO_ROOT / "tests" / "data" / "frozen_signatures"
FROZEN = REPO_ROOT / "experiments"
LIBRARIES = {path.stem: json.loads(path.read_text()) for path in sorted(SIGNATURES.glob("*.json"))}
MODULES = {library["module"]: library for library in LIBRARIES.values()}


@dataclass(frozen=True, slots=True)
class Call:
    """A call, named after its module or its object, with its file and line."""

    module: str
    name: str
    where: str
    positional: int
    keywords: tuple[str, ...]


def signature_of(text: str) -> inspect.Signature:
    namespace: dict[str, Any] = {}
    exec(f"def called{text}: ...", namespace)
    return inspect.signature(namespace["called"])


def bind(call: Call, text: str) -> None:
    """Raises TypeError where the arguments don't fit."""
    signature_of(text).bind(*[None] * call.positional, **dict.fromkeys(call.keywords))


def names_of_modules(tree: ast.AST) -> dict[str, str]:
    """What a file calls the frozen modules, also as attributes: ``self._xm`` →
    torch_xla.core.xla_model.
    """
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                alias.asname or alias.name: alias.name
                for alias in node.names
                if alias.name in MODULES
            }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in names:
            names[ast.unparse(node.targets[0])] = names[ast.unparse(node.value)]
    return names


def calls_in(path: Path) -> Iterator[Call]:
    """The calls of the frozen modules in a file; a decorator and a function that is passed on count
    as calls.
    """
    tree = ast.parse(path.read_text())
    names = names_of_modules(tree)
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    decorators = {
        id(decorator)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in names:
            where = f"{path.relative_to(REPO_ROOT)}:{node.lineno}"
            module = names[ast.unparse(node.value)]
            call = called.get(id(node))
            if call is not None:
                keywords = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
                yield Call(module, node.attr, where, len(call.args), keywords)
            elif id(node) in decorators:
                yield Call(module, node.attr, where, 1, ())
            else:  # transformers calls a save_function with an object and a path
                yield Call(module, node.attr, where, 2, ())


CALLS = [call for path in sorted(FROZEN.glob("*/*.py")) for call in calls_in(path)]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.where} {call.name}")
def test_call_fits_its_published_signature(call: Call) -> None:
    known = {
        published["name"]: published["signature"]
        for published in MODULES[call.module]["signatures"]
    }
    assert call.name in known, (
        f"{call.where} calls {call.name}, which has no signature in {SIGNATURES}"
    )
    bind(call, known[call.name])


def test_every_signature_has_a_source_and_a_call() -> None:
    for library in LIBRARIES.values():
        called = {call.name for call in CALLS if call.module == library["module"]}
        assert called == {published["name"] for published in library["signatures"]}, library[
            "module"
        ]
        stated = [*library["signatures"], *library.get("methods", [])]
        stated += [
            library[part] for part in ("backend", "entry_point", "parameters") if part in library
        ]
        assert {statement["source"] for statement in stated} <= set(library["sources"])
        assert all(source.startswith("https://") for source in library["sources"].values())


def test_methods_of_the_model_parallel_library_are_called_as_published() -> None:
    methods = LIBRARIES["smdistributed_modelparallel"]["methods"]
    trees = [
        ast.parse((FROZEN / "gptj_parallel" / name).read_text())
        for name in ("train.py", "parallel_model.py")
    ]
    for method in methods:
        name = method["name"].partition(".")[2]
        nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
        calls = [
            node
            for node in nodes
            if isinstance(node.func, ast.Attribute) and node.func.attr == name
        ]
        assert calls, name
        for node in calls:
            keywords = tuple(keyword.arg for keyword in node.keywords if keyword.arg)
            bind(Call("", name, "", len(node.args), keywords), method["signature"])


@pytest.mark.parametrize(
    ("script", "library"),
    [
        ("albert_scaling/train.py", "smdistributed_dataparallel"),
        ("bert_trainium/devices.py", "torch_xla_backend"),
    ],
)
def test_backend_is_named_after_its_module_is_imported(script: str, library: str) -> None:
    known = LIBRARIES[library]
    lines = (FROZEN / script).read_text().splitlines()
    (imported,) = [
        number for number, line in enumerate(lines) if f"import {known['module']}" in line
    ]
    (started,) = [
        number
        for number, line in enumerate(lines)
        if f'init_process_group(backend="{known["backend"]["name"]}")' in line
    ]
    assert imported < started


def test_the_training_compilers_launcher_finds_its_called_function() -> None:
    entry_point = LIBRARIES["training_compiler"]["entry_point"]
    tree = ast.parse((FROZEN / "gpt2_compiler" / "train.py").read_text())
    (function,) = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == entry_point["name"]
    ]
    assert [argument.arg for argument in function.args.args] == list(
        signature_of(entry_point["signature"]).parameters
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (
            "--fp16 1 --tensor_parallel_degree 8 --prescaled_batch 1 --optimize speed "
            "--shard_optimizer_state 1"
        ),
        "--sharded_data_parallel_degree 8 --ddp 1",
        "--mp_parameters "
        "ddp=True,microbatches=2,partitions=8,pipeline=simple,offload_activations=True,active_microbatches=2,auto_partition=True,default_partition=0,prescaled_batch=False,optimize=memory",
        '--mp_parameters {"ddp":true,"partitions":4,"fp16":true}',
    ],
)
def test_settings_of_the_model_parallel_library_are_documented(arguments: str) -> None:
    kinds = {"bool": bool, "int": int}
    documented = LIBRARIES["smdistributed_modelparallel"]["parameters"]["values"]
    for name, value in gptj_arguments.library_settings(
        gptj_arguments.parse_arguments(arguments.split())
    ).items():
        accepted = documented[name]
        assert value in accepted or type(value) in [kinds.get(kind) for kind in accepted], (
            name,
            value,
        )
