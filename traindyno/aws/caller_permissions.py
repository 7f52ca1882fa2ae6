"""Whether the caller may deploy a lab, by IAM's policy simulation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import ACCESS_DENIED, error_code, error_message
from traindyno.core.errors import TraindynoError

DEFAULT_QUALIFIER = "hnb659fds"
# The roles of the CDK bootstrap that `cdk deploy` assumes: all else that a deployment does is done by CloudFormation.
BOOTSTRAP_ROLES = ("deploy", "file-publishing")
# What a deployment does if the caller does not assume those roles; an SCP or a boundary may deny it.
ACTIONS = (
    "cloudformation:CreateStack",
    "codebuild:StartBuild",
    "dynamodb:CreateTable",
    "ecr:CreateRepository",
    "iam:CreateRole",
    "iam:PassRole",
    "lambda:CreateFunction",
    "s3:CreateBucket",
    "sagemaker:CreateTrainingJob",
    "sns:CreateTopic",
    "sqs:CreateQueue",
    "states:CreateStateMachine",
)
CALLER = re.compile(
    r"arn:(?P<partition>[\w-]+):(?:iam|sts)::(?P<account>\d+):(?P<kind>root|user|assumed-role|federated-user)(?:/(?P<name>.+))?"
)
UNKNOWN_TO_IAM = ACCESS_DENIED | {"NoSuchEntity", "InvalidInput"}


class NotSimulated(TraindynoError):
    """IAM has no answer about this caller, which says nothing about what the caller may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployingPermissions:
    """``assumed`` are the bootstrap's roles, if the caller may assume all of them. ``denied``: action → the policy that
    denies it; empty if the caller may deploy.
    """

    assumed: tuple[str, ...] = ()
    denied: dict[str, str]


def deploying_permissions(iam: Any, arn: str, *, region: str, qualifier: str) -> DeployingPermissions:
    """``arn``: the caller's ARN as STS returns it. Raises NotSimulated."""
    try:
        principal = _simulated_principal(iam, arn)
        roles = bootstrap_role_arns(arn, region=region, qualifier=qualifier)
        if not any(_denied(iam, principal, ["sts:AssumeRole"], resources=[role]) for role in roles):
            return DeployingPermissions(assumed=tuple(role.rpartition("/")[2] for role in roles), denied={})
        return DeployingPermissions(denied=_denied(iam, principal, ACTIONS))
    except ClientError as error:
        if error_code(error) in UNKNOWN_TO_IAM:
            raise NotSimulated(f"{error_code(error)}: {error_message(error)}") from error
        raise


def bootstrap_role_arns(arn: str, *, region: str, qualifier: str) -> list[str]:
    """The bootstrap's roles in the account of the caller, whose ARN is ``arn``."""
    caller = _parsed(arn)
    partition, account = caller["partition"], caller["account"]
    names = [f"cdk-{qualifier}-{name}-role-{account}-{region}" for name in BOOTSTRAP_ROLES]
    return [f"arn:{partition}:iam::{account}:role/{name}" for name in names]


def _parsed(arn: str) -> re.Match[str]:
    found = CALLER.fullmatch(arn)
    if found is None:
        raise NotSimulated(f"{arn} is not a caller that IAM simulates: expected a user or a session of a role")
    return found


def _simulated_principal(iam: Any, arn: str) -> str:
    """IAM simulates users and roles. The ARN of a role's session lacks the role's path, so IAM is asked for it."""
    caller = _parsed(arn)
    match caller["kind"]:
        case "user":
            return arn
        case "assumed-role":
            role: str = iam.get_role(RoleName=caller["name"].split("/")[0])["Role"]["Arn"]
            return role
        case "root":
            raise NotSimulated("IAM simulates no root user, whom policies of the account do not limit")
        case _:
            raise NotSimulated("IAM simulates no federated user")


def _denied(iam: Any, principal: str, actions: Sequence[str], *, resources: Sequence[str] = ("*",)) -> dict[str, str]:
    answer = iam.simulate_principal_policy(PolicySourceArn=principal, ActionNames=[*actions], ResourceArns=[*resources])
    results = answer["EvaluationResults"]
    return {each["EvalActionName"]: _denier(each) for each in results if each["EvalDecision"] != "allowed"}


def _denier(result: dict[str, Any]) -> str:
    if not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
        return "a service control policy of the organization"
    if not result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True):
        return "the permissions boundary"
    return "the caller's own policies"
