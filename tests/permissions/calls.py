"""The record of the calls that functions make: one line each, without the names that differ from
run to run.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.permissions.actions import parameters_of

RECORD = Path(__file__).parents[1] / "data" / "function_calls.txt"
NAMED_BY_LAB = {"EndpointConfigName", "EndpointName", "ModelName", "TrainingJobName"}


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """A call of a function, which is named by its folder in ``lambdas``; the operation begins with
    botocore's name of the service.
    """

    function: str
    operation: str
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join(
            [self.function, self.operation, *(f"{name}={value}" for name, value in self.parameters)]
        )

    @classmethod
    def parse(cls, line: str) -> Self:
        function, operation, *given = line.split()
        pairs = (text.partition("=") for text in given)
        return cls(function, operation, tuple((name, value) for name, _, value in pairs))


def recorded_calls() -> frozenset[Call]:
    return frozenset(map(Call.parse, RECORD.read_text().splitlines()))


def read_calls(written: Path, *, lab: str | None = None) -> frozenset[Call]:
    """What functions' workers have written (``worker_fork_server.py``), of one lab or of all."""
    lines = map(json.loads, written.read_text().splitlines() if written.exists() else [])
    return frozenset(
        call
        for line in lines
        if lab is None or line["variables"].get("LAB") == lab
        for call in _calls(line)
    )


def _calls(line: Mapping[str, Any]) -> Iterator[Call]:
    operation = f"{line['service']}:{line['operation']}"
    given = {
        name: _name(name, value, line["variables"]) for name, value in line["parameters"].items()
    }
    for more in _derived(line, given):
        kept = {
            name: value
            for name, value in (given | more).items()
            if name in parameters_of(operation)
        }
        yield Call(line["function"], operation, tuple(sorted(kept.items())))


def _derived(line: Mapping[str, Any], given: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """What the table knows by a name of its own; a transaction is several calls."""
    parameters = line["parameters"]
    variables = line["variables"]
    if "taskToken" in parameters:
        # The state belongs to the machine itself, or to a child execution of its Distributed Map
        yield from ({"Machine": machine} for machine in ("$LAB-suites", "$LAB-suites/*"))
    elif "TransactItems" in parameters:
        writes = {write for member in parameters["TransactItems"] for write in member.items()}
        yield from (
            {"Kind": kind, "TableName": _name("TableName", table, variables)}
            for kind, table in sorted(writes)
        )
    elif "Key" in parameters and "Bucket" in parameters:
        copied = parameters.get("CopySource")
        source = {"Source": _object(copied["Bucket"], copied["Key"], variables)} if copied else {}
        yield {"Object": _object(parameters["Bucket"], parameters["Key"], variables), **source}
    else:
        yield {}


def _object(bucket: str, key: str, variables: Mapping[str, str]) -> str:
    if variables.get("SOURCE_S3_URI") == f"s3://{bucket}/{key}":
        return "$SOURCE"
    lead = "code/*/jobs" if re.fullmatch("code/[^/]+/jobs/.+", key) else key.partition("/")[0]
    return f"{_name('Bucket', bucket, variables)}/{lead}/*"


def _name(parameter: str, value: Any, variables: Mapping[str, str]) -> str:
    """A variable's name for its value, and ``*`` for the part that differs from run to run."""
    if not isinstance(value, str):
        return "given"
    same = sorted(name for name, text in variables.items() if text == value)
    if same:
        return f"${same[0]}"
    machine = variables.get("STATE_MACHINE_ARN", "").replace(":stateMachine:", ":execution:")
    if machine and value.startswith(f"{machine}:"):
        return "$EXECUTIONS:*"
    own = (
        re.sub(rf"(^|/){re.escape(variables['LAB'])}--.*", r"\1$LAB--*", value)
        if "LAB" in variables
        else value
    )
    return "*" if parameter in NAMED_BY_LAB and own == value else own
