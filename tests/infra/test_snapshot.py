"""Resources, their fixed names and IAM statements of both stacks, one a line: a refactoring shows
its difference in tests/data/lab_resources.txt.

`RECORD=1 pytest tests/infra/test_snapshot.py` writes the file. What costs money or opens access has
tests of its own beside it.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from aws_cdk.assertions import Template

from tests.infra.synthesis import REPO_ROOT, as_list, flat, synthesise

FILE = REPO_ROOT / "tests/data/lab_resources.txt"
# Of an asset's content
HASH = re.compile(r"[0-9a-f]{64}")


def lines_of(template: Template) -> Iterator[str]:
    for name, resource in sorted(template.to_json()["Resources"].items()):
        given = resource.get("Properties", {})
        yield " ".join([name, resource["Type"], *fixed_name(resource["Type"], given)])
        for statement in statements_of(given):
            yield f"    {HASH.sub('HASH', json.dumps(statement, sort_keys=True))}"


def fixed_name(kind: str, given: Mapping[str, Any]) -> Iterator[str]:
    """A resource with one is renamed where CloudFormation would replace it."""
    if kind == "AWS::IAM::Policy":  # its name is unique within its role only
        return
    for field in ("Name", f"{kind.rpartition(':')[2]}Name"):
        if isinstance(given.get(field), str):
            yield f"name={given[field]}"


def statements_of(given: Any) -> Iterator[dict[str, Any]]:
    """Sorted members; a reference is the text that ``flat`` makes of it."""
    match given:
        case {"Effect": effect, "Action": action}:
            resources = sorted(flat(resource) for resource in as_list(given.get("Resource", [])))
            others = given.keys() - {"Effect", "Action", "Resource"}
            yield {
                "Effect": effect,
                "Action": sorted(as_list(action)),
                "Resource": resources,
                **{name: given[name] for name in others},
            }
        case dict():
            for part in given.values():
                yield from statements_of(part)
        case list():
            for part in given:
                yield from statements_of(part)


def test_a_changed_resource_or_statement_is_seen_in_the_record() -> None:
    assembly = synthesise(target="aws", file="neuron = true")
    record = "".join(
        f"{line}\n"
        for stack in ("Lab", "LabImages")
        for line in (f"# {stack}", *lines_of(assembly.template(stack)))
    )
    if os.environ.get("RECORD"):
        FILE.write_text(record)
    assert record.splitlines() == FILE.read_text().splitlines()
