"""Resources and IAM statements of both stacks, one a line: a refactoring shows its difference in
tests/data/lab_resources.txt.

`RECORD=1 pytest tests/infra/test_snapshot.py` writes the file. What costs money or opens access has
tests of its own beside it.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from aws_cdk.assertions import Template

from tests.infra.synthesis import REPO_ROOT, as_list, flat, synthesise

FILE = REPO_ROOT / "tests/data/lab_resources.txt"
# Of an asset's content
HASH = re.compile(r"[0-9a-f]{64}")


def lines_of(template: Template) -> Iterator[str]:
    for name, resource in sorted(template.to_json()["Resources"].items()):
        yield f"{name} {resource['Type']}"
        for statement in statements_of(resource.get("Properties", {})):
            yield f"    {HASH.sub('HASH', json.dumps(statement, sort_keys=True))}"


def statements_of(given: Any) -> Iterator[dict[str, Any]]:
    """Sorted members; a reference is the text that ``flat`` makes of it."""
    match given:
        case {"Effect": effect, "Action": action}:
            resources = sorted(flat(each) for each in as_list(given.get("Resource", [])))
            others = given.keys() - {"Effect", "Action", "Resource"}
            yield {
                "Effect": effect,
                "Action": sorted(as_list(action)),
                "Resource": resources,
                **{name: given[name] for name in others},
            }
        case dict():
            for each in given.values():
                yield from statements_of(each)
        case list():
            for each in given:
                yield from statements_of(each)


def test_a_changed_resource_or_statement_is_seen_in_the_record() -> None:
    assembly = synthesise(target="aws", file="neuron = true")
    found = "".join(
        f"{line}\n"
        for stack in ("Lab", "LabImages")
        for line in (f"# {stack}", *lines_of(assembly.template(stack)))
    )
    if os.environ.get("RECORD"):
        FILE.write_text(found)
    assert found.splitlines() == FILE.read_text().splitlines()
