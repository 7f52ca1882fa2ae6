"""The record of functions' calls is complete, by reading their code, and the table of IAM actions
covers it.
"""

import ast
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.permissions.actions import NEEDS, parameters_of
from tests.permissions.calls import RECORD, Call, recorded_calls
from tests.permissions.reach import CLIENTS, REPO_ROOT, methods_of, operations_of, sent_in
from tests.permissions.unsent import UNSENT

CALLS = recorded_calls() | UNSENT.keys()
ADAPTERS = [
    path.relative_to(REPO_ROOT) for path in sorted((REPO_ROOT / "traindyno/aws").glob("*.py"))
]
FUNCTIONS = sorted(path.parent.name for path in (REPO_ROOT / "lambdas").glob("*/handler.py"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_record_holds_every_possible_operation_of_a_function_and_no_other(
    function: str,
) -> None:
    recorded = {call.operation for call in CALLS if call.function == function}
    assert recorded == operations_of(function)


def test_the_table_has_the_operations_of_the_record_and_no_others() -> None:
    assert NEEDS.keys() == {call.operation for call in CALLS}


def test_every_operation_of_the_table_exists_in_aws() -> None:
    for operation in NEEDS:
        service, _, name = operation.partition(":")
        assert name in methods_of(service).values(), operation


@pytest.mark.parametrize("call", sorted(CALLS), ids=str)
def test_a_call_names_the_parameters_of_its_permissions(call: Call) -> None:
    given = dict(call.parameters)
    assert given.keys() <= parameters_of(call.operation)
    optional = {need.where[0] for need in NEEDS[call.operation]}
    assert parameters_of(call.operation) - given.keys() <= optional


def test_a_call_is_recorded_or_known_to_be_unsent_but_not_both() -> None:
    lines = RECORD.read_text().splitlines()
    assert lines == sorted(set(lines))
    assert recorded_calls() & UNSENT.keys() == set()
    assert all(reason.strip() for reason in UNSENT.values())


@pytest.mark.parametrize("path", ADAPTERS, ids=str)
def test_no_call_of_a_client_is_overlooked(path: Path) -> None:
    """Every method with the name of an operation is read as one, whatever it is called on."""
    names = {method for service in set(CLIENTS.values()) for method in methods_of(service)}
    overlooked = [
        node
        for node in ast.walk(ast.parse((REPO_ROOT / path).read_text()))
        if _is_named_like_a_call(node, names)
        and not sent_in(".".join(path.with_suffix("").parts), node)
    ]
    assert [f"{path}:{node.lineno} {ast.unparse(node)}" for node in overlooked] == []


def _is_named_like_a_call(node: ast.AST, names: set[str]) -> TypeGuard[ast.expr]:
    match node:
        case ast.Attribute(value=ast.Name(id=constant)) if constant.isupper():
            return False  # a compiled pattern has a method search, too
        case ast.Attribute(attr=name):
            return name in names
        case ast.Call(func=ast.Attribute(attr="get_paginator")):
            return True
    return False
