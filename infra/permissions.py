"""Grants to one role, statement by statement, with the reason for every wildcard beside it."""

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from infra.acknowledgements import acknowledge


def allow(
    role: iam.Role,
    actions: Sequence[str],
    resources: Sequence[str],
    *,
    wildcard_reason: str | None = None,
    conditions: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """``wildcard_reason`` is required exactly when a resource holds a wildcard."""
    wild = [resource for resource in resources if "*" in resource]
    if bool(wild) != bool(wildcard_reason):
        raise ValueError(f"{role.node.path}: {resources} need a reason exactly when there is a wildcard")
    role.add_to_policy(iam.PolicyStatement(actions=[*actions], resources=[*resources], conditions=conditions))
    for resource in wild:
        acknowledge(role, f"AwsSolutions-IAM5[Resource::{_as_reported(role, resource)}]", wildcard_reason or "")


def _as_reported(role: iam.Role, arn: str) -> str:
    """The rules print ``<LogicalId.Attribute>`` for a reference that is a token in the ARN."""
    resolved = cdk.Stack.of(role).resolve(arn)
    if isinstance(resolved, str):
        return resolved
    return "".join(part if isinstance(part, str) else _reference(part) for part in resolved["Fn::Join"][1])


def _reference(part: Mapping[str, object]) -> str:
    match part:
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
    raise ValueError(f"expected Ref or Fn::GetAtt, found {part}")
