"""The resource that CloudFormation must ask before it deletes anything of a lab."""

import json

import pytest
from aws_cdk.assertions import Template

from tests.infra.synthesis import (
    OTHER_LAB,
    as_list,
    flat,
    lab,
    needed,
    only,
    properties,
    statements,
)

GUARD = "Custom::TraindynoGuard"


@pytest.fixture(scope="module", params=["local", "aws"])
def template(request: pytest.FixtureRequest) -> Template:
    return lab(target=request.param) if request.param == "local" else lab(**OTHER_LAB)


def test_everything_in_the_stack_is_deleted_after_the_guard(template: Template) -> None:
    resources = template.to_json()["Resources"]
    guard = only(template, GUARD)
    assert set(resources) - needed(template, guard) == set()
    assert not [
        name for name, resource in resources.items() if f'"{guard}"' in json.dumps(resource)
    ], "it would wait for itself"


def test_the_guard_may_look_and_delete_endpoints_and_nothing_else(template: Template) -> None:
    (name,) = [
        machine["StateMachineName"]
        for machine in properties(template, "AWS::StepFunctions::StateMachine").values()
    ]
    keyed = {"kms:Decrypt"} if name == "other-lab-suites" else set()
    allowed = statements(template, "GuardGuardLabRole")
    actions = {action for statement in allowed for action in as_list(statement["Action"])}
    looks = {
        "cloudformation:DescribeStacks",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "states:ListExecutions",
        "dynamodb:Query",
    }
    deletes = {
        f"sagemaker:{name}" for name in ("DeleteEndpoint", "DeleteEndpointConfig", "DeleteModel")
    }
    asks = {f"sagemaker:{name}" for name in ("ListEndpoints", "DescribeEndpoint", "ListTags")}
    assert (
        actions
        == looks | asks | deletes | {"s3:ListBucket", "s3:GetObject", "s3:DeleteObject"} | keyed
    )
    guard = {"Handler": "lambdas.guard_lab.handler.handle"}
    (function,) = properties(template, "AWS::Lambda::Function", guard).values()
    assert flat(function["Environment"]["Variables"]["STATE_MACHINE_ARN"]).endswith(
        f":stateMachine:{name}"
    )


def test_a_silent_guard_holds_nobody_up_for_an_hour(template: Template) -> None:
    template.has_resource_properties(GUARD, {"ServiceTimeout": "120"})
