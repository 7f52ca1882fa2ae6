"""Synthesise the app as `cdk synth` would, once per context, without credentials, network or
Docker.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Capture, Template

from infra.lab_stack import add_lab

REPO_ROOT = Path(__file__).resolve().parents[2]
KEY = "arn:aws:kms:eu-west-1:111122223333:key/abc"
SECRET = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:hub-AbCdEf"
BOUNDARY = "arn:aws:iam::111122223333:policy/Bound"
VPC = """
subnets = ["subnet-0123456789abcdef0", "subnet-1123456789abcdef0"]
security_groups = ["sg-0123456789abcdef0"]
"""
# A second lab with everything that a person may set; one synthesis serves every test of such
# settings.
OTHER_LAB = {
    "target": "aws",
    "lab": "other-lab",
    "file": f"""{VPC}
data_buckets = ["my-data", "more"]
data_keys = ["{KEY}-of-data"]
encrypt_traffic = true
isolate_network = true
volume_key = "{KEY}"
output_key = "{KEY}"
volume_gb = 200
hub_token_secrets = ["{SECRET}"]
permissions_boundary = "{BOUNDARY}"
notify_email = "me@example.com"
job_tags = {{team = "vision", cost = "42"}}
keep_results = false
termination_protection = false
""",
}


@dataclass(frozen=True, slots=True)
class Assembly:
    folder: Path
    _kept: TemporaryDirectory[str]

    def template(self, name: str) -> Template:
        return Template.from_json(json.loads((self.folder / f"{name}.template.json").read_text()))

    def annotations(self) -> list[str]:
        """Warnings and errors that the CDK would print."""
        reports = [json.loads(path.read_text()) for path in self.folder.glob("*.metadata.json")]
        entries = [entry for report in reports for listed in report.values() for entry in listed]
        return [
            str(entry["data"])
            for entry in entries
            if entry["type"] in {"aws:cdk:warning", "aws:cdk:error"}
        ]

    def rule_findings(self) -> list[dict[str, Any]]:
        report = json.loads((self.folder / "validation-report.json").read_text())
        return [finding for plugin in report["pluginReports"] for finding in plugin["violations"]]


def properties(
    template: Template, kind: str, like: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Properties by logical id, of the resources whose properties are ``like`` these."""
    resources = template.find_resources(kind, {"Properties": like} if like else None)
    return {name: dict(resource.get("Properties", {})) for name, resource in resources.items()}


def only(template: Template, kind: str, like: Mapping[str, Any] | None = None) -> str:
    """The logical id of the one resource."""
    (name,) = properties(template, kind, like)
    return name


def needed(template: Template, name: str) -> set[str]:
    """The resource and all that CloudFormation makes before it: by Ref, by GetAtt, within a Sub, or
    as it is told.
    """
    resources = template.to_json()["Resources"]
    needs = set[str]()
    left = [name]
    while left:
        name = left.pop()
        if name not in needs and name in resources:
            needs.add(name)
            text = json.dumps(resources[name])
            left += re.findall(r'(?:"Ref": "|"Fn::GetAtt": \["|\$\{)(\w+)', text)
            left += as_list(resources[name].get("DependsOn", []))
    return needs


def statements(template: Template, role_part: str) -> list[dict[str, Any]]:
    """Policy statements of the one role whose logical id holds ``role_part``."""
    (role,) = [
        role for name, role in properties(template, "AWS::IAM::Role").items() if role_part in name
    ]
    return [
        statement
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def definition(template: Template) -> dict[str, Any]:
    """The state machine's definition, with the logical id of a resource in place of each reference
    to it.
    """
    text = Capture()
    template.has_resource_properties("AWS::StepFunctions::StateMachine", {"DefinitionString": text})
    return dict(json.loads(flat(text.as_object())))


def flat(value: Any) -> str:
    """A string property as one text: pseudo parameters and resources by their names."""
    match value:
        case str():
            return value
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(map(flat, parts))
        case {"Ref": str(name)}:
            return name
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"{name}.{attribute}"
        case {"Fn::Sub": str(text)}:
            return text
    raise ValueError(f"expected text or an intrinsic function, found {value}")


@cache
def synthesise(file: str = "", **context: str) -> Assembly:
    """The assembly of a lab whose file has this text."""
    kept = TemporaryDirectory()
    settings = json.loads((REPO_ROOT / "cdk.json").read_text())["context"] | context
    app = cdk.App(outdir=kept.name, context=settings, builtin_cloud_formation_validation=False)
    with TemporaryDirectory() as staging, TemporaryDirectory() as labs:
        (Path(labs) / f"{settings['lab']}.toml").write_text(file)
        add_lab(app, staging=Path(staging), labs=Path(labs))
    app.synth()
    return Assembly(folder=Path(kept.name), _kept=kept)


@cache
def lab(**context: str) -> Template:
    return synthesise(**context).template("Lab")


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
