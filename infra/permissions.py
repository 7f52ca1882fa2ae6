"""IAM statements of a role, with a reason for each wildcard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from cdk_nag import AwsSolutionsChecks
from constructs import Construct, IConstruct

Conditions = Mapping[str, Mapping[str, str]]


def check_rules(app: cdk.App) -> None:
    """Checks every template, also against CloudFormation's own rules; a finding without a reason
    fails synthesis.
    """
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), cdk.CloudFormationValidatePlugin())


def acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    """``reasons``: finding → reason."""
    if reasons:
        excused = [
            cdk.Acknowledgment(id=finding, reason=reason) for finding, reason in reasons.items()
        ]
        cdk.Validations.of(scope).acknowledge(*excused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """``wildcard_reason`` is there exactly when a resource holds a wildcard."""

    actions: Sequence[str]
    resources: Sequence[str]
    wildcard_reason: str | None = None
    conditions: Conditions = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.wild_resources) != bool(self.wildcard_reason):
            raise ValueError(
                f"{self.actions} on {self.resources}: expected a reason exactly if there is a "
                "wildcard"
            )

    @property
    def wild_resources(self) -> list[str]:
        return [resource for resource in self.resources if "*" in resource]

    def statement(self) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            actions=[*self.actions], resources=[*self.resources], conditions=self.conditions
        )


def make_role(
    scope: Construct,
    construct_id: str,
    *,
    service: str,
    grants: Sequence[Grant],
    trust_conditions: Conditions | None = None,
    description: str | None = None,
) -> iam.Role:
    """One policy within the role: the role is complete before anything can use it."""
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal(service, conditions=trust_conditions),
        description=description,
        inline_policies={
            "Grants": iam.PolicyDocument(statements=[grant.statement() for grant in grants])
        },
    )
    acknowledge(role, _wildcards(cdk.Stack.of(scope), grants))
    return role


def arn(stack: cdk.Stack, service: str, resource: str, *, account: str | None = None) -> str:
    """The ARN of a resource; ``account`` of None: the stack's own."""
    return f"arn:{stack.partition}:{service}:{stack.region}:{account or stack.account}:{resource}"


def _wildcards(stack: cdk.Stack, grants: Sequence[Grant]) -> dict[str, str]:
    """Finding → reason."""
    reasons = {}
    for grant in grants:
        for resource in grant.wild_resources:
            reported = _as_reported(stack.resolve(resource))
            reasons[f"AwsSolutions-IAM5[Resource::{reported}]"] = grant.wildcard_reason or ""
    return reasons


def _as_reported(arn: Any) -> str:
    """The rules print ``<LogicalId.Attribute>`` for a reference that is a token in the ARN."""
    match arn:
        case str():
            return arn
        case {"Fn::Join": ["", list(parts)]}:
            return "".join(map(_as_reported, parts))
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
    raise ValueError(f"found {arn}, expected text or a reference")
