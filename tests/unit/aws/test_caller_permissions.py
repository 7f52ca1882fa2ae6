"""Which principal IAM is asked about for each kind of caller, and which callers it can't be asked about."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.stubbed import stubbed
from traindyno.aws.caller_permissions import (
    ACTIONS,
    BOOTSTRAP_ROLES,
    DeployingPermissions,
    NotSimulated,
    deploying_permissions,
)

ACCOUNT, REGION = "111122223333", "eu-west-1"
SSO_NAME = "AWSReservedSSO_AdministratorAccess_0123456789abcdef"
SSO_PATH = f"aws-reserved/sso.amazonaws.com/{REGION}/"
ALLOWED = {"EvaluationResults": [{"EvalActionName": "sts:AssumeRole", "EvalDecision": "allowed"}]}


def role_answer(arn: str) -> dict[str, Any]:
    name = arn.rpartition("/")[2]
    created = datetime(2026, 11, 22, tzinfo=UTC)
    return {"Role": {"Path": "/", "RoleName": name, "RoleId": "A" * 16, "Arn": arn, "CreateDate": created}}


@pytest.mark.parametrize(
    ("caller", "principal"),
    [
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/Plain/me", f"arn:aws:iam::{ACCOUNT}:role/Plain"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/Deep/a@b.c", f"arn:aws:iam::{ACCOUNT}:role/team/ml/Deep"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/{SSO_NAME}/me", f"arn:aws:iam::{ACCOUNT}:role/{SSO_PATH}{SSO_NAME}"),
        (f"arn:aws-cn:sts::{ACCOUNT}:assumed-role/Plain/me", f"arn:aws-cn:iam::{ACCOUNT}:role/Plain"),
        (f"arn:aws:iam::{ACCOUNT}:user/ada", None),
        (f"arn:aws:iam::{ACCOUNT}:user/team/ml/ada", None),
        (f"arn:aws-us-gov:iam::{ACCOUNT}:user/ada", None),
    ],
)
def test_iam_is_asked_about_the_user_or_the_role_with_its_path(caller: str, principal: str | None) -> None:
    partition = caller.split(":")[1]
    roles = [f"cdk-mine-{name}-role-{ACCOUNT}-{REGION}" for name in BOOTSTRAP_ROLES]
    with stubbed("iam") as (iam, stubber):
        if principal is not None:
            asked = {"RoleName": principal.rpartition("/")[2]}
            stubber.add_response("get_role", role_answer(principal), asked)
        for role in roles:
            asked_about = {
                "PolicySourceArn": principal or caller,
                "ActionNames": ["sts:AssumeRole"],
                "ResourceArns": [f"arn:{partition}:iam::{ACCOUNT}:role/{role}"],
            }
            stubber.add_response("simulate_principal_policy", ALLOWED, asked_about)
        answer = deploying_permissions(iam, caller, region=REGION, qualifier="mine")
    assert answer == DeployingPermissions(assumed=tuple(roles), denied={})


@pytest.mark.parametrize(
    ("caller", "reason"),
    [
        (f"arn:aws:iam::{ACCOUNT}:root", "no root user"),
        (f"arn:aws:sts::{ACCOUNT}:federated-user/ada", "no federated user"),
        (f"arn:aws:sts::{ACCOUNT}:something-new/ada", "something-new/ada is not a caller that IAM simulates"),
    ],
)
def test_iam_is_not_asked_about_a_caller_that_it_does_not_simulate(caller: str, reason: str) -> None:
    with stubbed("iam") as (iam, _), pytest.raises(NotSimulated, match=reason):
        deploying_permissions(iam, caller, region=REGION, qualifier="mine")


@pytest.mark.parametrize("code", ["NoSuchEntity", "InvalidInput", "AccessDenied"])
@pytest.mark.parametrize("operation", ["get_role", "simulate_principal_policy"])
def test_a_refused_question_says_nothing_about_the_caller(operation: str, code: str) -> None:
    caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/Plain/me"
    with stubbed("iam") as (iam, stubber):
        if operation != "get_role":
            stubber.add_response("get_role", role_answer(f"arn:aws:iam::{ACCOUNT}:role/Plain"))
        stubber.add_client_error(operation, code, "no")
        with pytest.raises(NotSimulated, match=f"{code}: no"):
            deploying_permissions(iam, caller, region=REGION, qualifier="mine")


def test_caller_that_may_not_assume_the_roles_is_checked_for_each_action() -> None:
    caller = f"arn:aws:iam::{ACCOUNT}:user/ada"
    refused = {"EvaluationResults": [{"EvalActionName": "sts:AssumeRole", "EvalDecision": "implicitDeny"}]}
    results = [{"EvalActionName": name, "EvalDecision": "allowed"} for name in ACTIONS]
    results[1] |= {"EvalDecision": "explicitDeny"}
    with stubbed("iam") as (iam, stubber):
        stubber.add_response("simulate_principal_policy", ALLOWED)
        stubber.add_response("simulate_principal_policy", refused)
        asked = {"PolicySourceArn": caller, "ActionNames": [*ACTIONS], "ResourceArns": ["*"]}
        stubber.add_response("simulate_principal_policy", {"EvaluationResults": results}, asked)
        answer = deploying_permissions(iam, caller, region=REGION, qualifier="mine")
    assert answer == DeployingPermissions(denied={ACTIONS[1]: "the caller's own policies"})
