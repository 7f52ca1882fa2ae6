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
    """Excuses the findings of a construct, each by its reason."""
    if reasons:
        excused = [
            cdk.Acknowledgment(id=finding, reason=reason) for finding, reason in reasons.items()
        ]
        cdk.Validations.of(scope).acknowledge(*excused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Actions on resources that a role may take."""

    actions: Sequence[str]
    resources: Sequence[str]
    #: Why a wildcard is needed. It is given exactly when a resource holds a wildcard.
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
    """Makes a role for a service of AWS.

    Its one policy is within the role, so that the role is complete before anything can use it.

    Args:
        scope: The construct that gets the role.
        construct_id: The role's name within it.
        service: The service that assumes the role, such as lambda.amazonaws.com.
        grants: What the role may do.
        trust_conditions: Conditions on assuming the role, if there are any.
        description: The description in the console.
    """
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
    """The ARN of a resource, in the stack's own account if no other is given."""
    return f"arn:{stack.partition}:{service}:{stack.region}:{account or stack.account}:{resource}"


def _wildcards(stack: cdk.Stack, grants: Sequence[Grant]) -> dict[str, str]:
    """The reason of each finding about a wildcard in the grants."""
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
