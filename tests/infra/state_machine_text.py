"""Writes a synthesised template's state machines with example ARNs, for validators that can't read
CloudFormation.

Usage: python -m tests.infra.state_machine_text TEMPLATE FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any

ACCOUNT = "111122223333"
REGION = "us-east-1"
PSEUDO_PARAMETERS = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
}
KIND = "AWS::StepFunctions::StateMachine"


def state_machine_definitions(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """State machine name → definition."""
    machines = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == KIND
    ]
    return {
        machine["StateMachineName"]: dict(json.loads(_text(machine["DefinitionString"])))
        for machine in machines
    }


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(map(_text, parts))
        case {"Ref": str(name)}:
            return PSEUDO_PARAMETERS.get(name, name.lower())
        case {"Fn::GetAtt": [str(name), "Arn"]}:
            return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
    raise ValueError(f"found {value}, expected text, Fn::Join, Ref or the Arn of a function")


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for name, definition in state_machine_definitions(json.loads(source.read_text())).items():
        (target / f"{name}.asl.json").write_text(json.dumps(definition, indent=1))
