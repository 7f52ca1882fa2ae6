"""Who may do what: the roles of functions, jobs and the state machine, statement by statement."""

import re
from typing import Any

import pytest
from aws_cdk.assertions import Capture, Match, Template

from tests.infra.synthesis import (
    BOUNDARY,
    KEY,
    OTHER_LAB,
    SECRET,
    as_list,
    flat,
    lab,
    properties,
    statements,
)
from traindyno.sagemaker.job_settings import read_lab_jobs

STATES = {
    "PlanSuite",
    "CheckQuotas",
    "PlanRound",
    "SubmitRun",
    "FinishRun",
    "RecordRun",
    "ReconcileRuns",
    "StopRuns",
    "JudgeSuite",
}
# Actions that AWS lets nobody narrow to a resource.
WITHOUT_RESOURCES = {
    "cloudwatch:PutMetricData",
    "ecr:GetAuthorizationToken",
    "pricing:GetProducts",
    "sagemaker:ListEndpoints",
    "sagemaker:ListTrainingJobs",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
    "servicequotas:ListAWSDefaultServiceQuotas",
    "servicequotas:ListServiceQuotas",
}
OURS = "arn:AWS::Partition:sagemaker:AWS::Region:AWS::AccountId"


@pytest.fixture(scope="module")
def template() -> Template:
    return lab(target="local")


def actions_of(policy: list[dict[str, Any]]) -> set[str]:
    return {action for statement in policy for action in as_list(statement["Action"])}


def resources_for(policy: list[dict[str, Any]], action: str) -> list[str]:
    allowing = [statement for statement in policy if action in as_list(statement["Action"])]
    return [flat(resource) for statement in allowing for resource in as_list(statement["Resource"])]


def test_each_function_has_a_role_of_its_own(template: Template) -> None:
    functions = properties(template, "AWS::Lambda::Function")
    roles = {flat(function["Role"]) for function in functions.values()}
    assert len(roles) == len(functions) == len({*STATES, "GuardLab"})


def test_no_role_has_all_actions_or_all_nameable_resources(
    template: Template,
) -> None:
    for name in properties(template, "AWS::IAM::Role"):
        for statement in statements(template, name):
            actions = actions_of([statement])
            assert not [action for action in actions if "*" in action], name
            # The rules excuse log delivery and tracing of the state machine by name.
            if "*" in map(flat, as_list(statement["Resource"])) and "OrchestrationRole" not in name:
                assert actions <= WITHOUT_RESOURCES


def test_roles_have_their_policies_inline(template: Template) -> None:
    template.resource_count_is("AWS::IAM::Policy", 0)
    template.all_resources_properties("AWS::IAM::Role", {"ManagedPolicyArns": Match.absent()})


def test_the_training_role_is_handed_over_by_submit_run_to_sagemaker_only(
    template: Template,
) -> None:
    passing = [
        (state, statement)
        for state in STATES
        for statement in statements(template, f"Functions{state}Role")
        if "iam:PassRole" in as_list(statement["Action"])
    ]
    ((state, statement),) = passing
    assert state == "SubmitRun"
    assert flat(statement["Resource"]).startswith("IdentityTrainingRole")
    assert statement["Condition"] == {
        "StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}
    }


def test_a_training_job_reads_data_and_source_but_writes_results_and_tokens_only(
    template: Template,
) -> None:
    policy = statements(template, "IdentityTrainingRole")
    written = {name.rpartition("Arn/")[2] for name in resources_for(policy, "s3:PutObject")}
    assert written == {"runs/*", "trained/*", "prepared/*"}
    assert any(name.endswith("/data/*") for name in resources_for(policy, "s3:GetObject"))
    here = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    trusted = {"Principal": {"Service": "sagemaker.amazonaws.com"}, "Condition": here}
    trust = {"AssumeRolePolicyDocument": {"Statement": [Match.object_like(trusted)]}}
    assert any(
        "IdentityTrainingRole" in name for name in properties(template, "AWS::IAM::Role", trust)
    )


def test_a_job_may_read_the_named_buckets_and_no_others() -> None:
    plain, named = (
        {
            name
            for name in resources_for(statements(template, "IdentityTrainingRole"), "s3:GetObject")
            if "*" in name
        }
        for template in (lab(target="aws"), lab(**OTHER_LAB))
    )
    assert {name.rpartition(":")[2] for name in named - plain} == {"my-data/*", "more/*"}


def test_the_state_machine_invokes_its_six_functions_and_nothing_else(template: Template) -> None:
    policy = statements(template, "OrchestrationRole")
    invoked = resources_for(policy, "lambda:InvokeFunction")
    assert len(invoked) == 6
    assert not any("*" in name for name in invoked)
    assert resources_for(policy, "states:StartExecution") == [
        "arn:AWS::Partition:states:AWS::Region:AWS::AccountId:stateMachine:traindyno-suites"
    ]


@pytest.mark.parametrize("role", ["FunctionsReconcileRunsRole", "GuardGuardLabRole"])
def test_functions_end_endpoints_with_this_labs_tag_only(template: Template, role: str) -> None:
    policy = statements(template, role)
    of_hosting = [
        statement for statement in policy if re.search("Endpoint|Model", str(statement["Action"]))
    ]
    names = {
        flat(resource) for statement in of_hosting for resource in as_list(statement["Resource"])
    }
    assert all(
        re.fullmatch(rf"{OURS}:(model|endpoint|endpoint-config)/traindyno--\*", name)
        for name in names - {"*"}
    )
    (ending,) = [
        statement
        for statement in policy
        if "sagemaker:DeleteEndpoint" in as_list(statement["Action"])
    ]
    assert ending["Condition"] == {"StringEquals": {"aws:ResourceTag/traindyno:lab": "traindyno"}}
    assert not {"sagemaker:CreateEndpoint", "iam:PassRole"} & actions_of(policy)


def test_a_served_model_reads_its_copy_and_writes_no_object(template: Template) -> None:
    policy = statements(template, "ServedModelRole")
    assert {name.rpartition("Arn/")[2] for name in resources_for(policy, "s3:GetObject")} == {
        "models/*"
    }
    assert not {"s3:PutObject", "secretsmanager:GetSecretValue", "dynamodb:GetItem"} & actions_of(
        policy
    )
    images = {
        name.rpartition("repository/")[2] for name in resources_for(policy, "ecr:BatchGetImage")
    }
    assert images == {"pytorch-inference"}
    named = statements(lab(**OTHER_LAB), "ServedModelRole")
    assert "secretsmanager:GetSecretValue" not in actions_of(named)
    assert set(resources_for(named, "kms:Decrypt")) == {KEY}


def test_a_permissions_boundary_bounds_every_role() -> None:
    for template, boundary in ((lab(**OTHER_LAB), BOUNDARY), (lab(target="aws"), Match.absent())):
        template.all_resources_properties("AWS::IAM::Role", {"PermissionsBoundary": boundary})


def test_jobs_in_a_vpc_with_keys_and_a_secret_may_use_them_and_others_may_not() -> None:
    further = {
        "secretsmanager:GetSecretValue",
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "kms:CreateGrant",
    }
    plain = statements(lab(target="aws"), "IdentityTrainingRole")
    assert not (further | {"ec2:CreateNetworkInterface"}) & actions_of(plain)
    policy = statements(lab(**OTHER_LAB), "IdentityTrainingRole")
    assert "ec2:CreateNetworkInterface" in actions_of(policy)
    assert resources_for(policy, "secretsmanager:GetSecretValue") == [SECRET]
    assert set(resources_for(policy, "kms:Decrypt")) == {KEY, f"{KEY}-of-data"}
    assert resources_for(policy, "kms:CreateGrant") == [KEY]
    assert resources_for(policy, "kms:GenerateDataKey") == [KEY]


def test_settings_of_jobs_reach_the_planning_and_starting_functions() -> None:
    for folder in ("plan_suite", "submit_run"):
        told = Capture()
        variables = {"Environment": {"Variables": {"LAB_JOBS": told}}}
        function = {"Handler": f"lambdas.{folder}.handler.handle", **variables}
        lab(**OTHER_LAB).has_resource_properties("AWS::Lambda::Function", function)
        jobs = read_lab_jobs(told.as_string())
        assert (jobs.encrypts_traffic, jobs.volume_key_arn, jobs.volume_size_gb) == (True, KEY, 200)
        assert (len(jobs.subnet_ids), jobs.tags["team"]) == (2, "vision")
