"""Who may do what: the roles of functions, jobs and the state machine, statement by statement."""

import re
from typing import Any

import pytest

from tests.infra.synthesis import BOUNDARY, KEY, OTHER_LAB, SECRET, Template, as_list, flat, lab
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


@pytest.fixture(scope="module")
def template() -> Template:
    return lab(target="local")


def actions_of(statements: list[dict[str, Any]]) -> set[str]:
    return {action for statement in statements for action in as_list(statement["Action"])}


def resources_for(statements: list[dict[str, Any]], action: str) -> list[str]:
    found = [each for each in statements if action in as_list(each["Action"])]
    return [flat(resource) for each in found for resource in as_list(each["Resource"])]


def test_each_function_has_a_role_of_its_own(template: Template) -> None:
    functions = template.of_type("AWS::Lambda::Function")
    roles = {flat(function["Role"]) for function in functions.values()}
    assert len(roles) == len(functions) == len({*STATES, "GuardLab"})


def test_no_role_may_do_everything_with_a_service(template: Template) -> None:
    for name in template.of_type("AWS::IAM::Role"):
        assert not [action for action in actions_of(template.statements(name)) if "*" in action], name


def test_only_actions_without_resources_are_allowed_on_all(template: Template) -> None:
    for name in template.of_type("AWS::IAM::Role"):
        if "OrchestrationRole" in name or "MachineRole" in name:
            continue  # log delivery and tracing, excused by name in the rules
        for statement in template.statements(name):
            if "*" in map(flat, as_list(statement["Resource"])):
                assert actions_of([statement]) <= WITHOUT_RESOURCES


def test_roles_have_their_policies_inline(template: Template) -> None:
    assert template.of_type("AWS::IAM::Policy") == {}


def test_roles_come_without_managed_policies(template: Template) -> None:
    for role in template.of_type("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role


def test_the_training_role_is_handed_over_by_submit_run_to_sagemaker_only(template: Template) -> None:
    passing = [
        (state, statement)
        for state in STATES
        for statement in template.statements(f"Functions{state}Role")
        if "iam:PassRole" in as_list(statement["Action"])
    ]
    ((state, statement),) = passing
    assert state == "SubmitRun"
    assert flat(statement["Resource"]).startswith("IdentityTrainingRole")
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}


def test_a_training_job_reads_data_and_source_but_writes_results_and_tokens_only(template: Template) -> None:
    statements = template.statements("IdentityTrainingRole")
    assert {name.rpartition("Arn/")[2] for name in resources_for(statements, "s3:PutObject")} == {
        "runs/*",
        "prepared/*",
    }
    assert any(name.endswith("/data/*") for name in resources_for(statements, "s3:GetObject"))
    trusted = [role for name, role in template.of_type("AWS::IAM::Role").items() if "TrainingRole" in name]
    (statement,) = trusted[0]["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_a_job_may_read_the_buckets_that_the_context_names_and_no_others() -> None:
    plain, named = (
        {name for name in resources_for(template.statements("IdentityTrainingRole"), "s3:GetObject") if "*" in name}
        for template in (lab(target="aws"), lab(**OTHER_LAB))
    )
    assert {name.rpartition(":")[2] for name in named - plain} == {"my-data/*", "more/*"}


def test_the_state_machine_invokes_its_six_functions_and_nothing_else(template: Template) -> None:
    statements = template.statements("OrchestrationRole")
    invoked = resources_for(statements, "lambda:InvokeFunction")
    assert len(invoked) == 6
    assert not any("*" in name for name in invoked)
    assert resources_for(statements, "states:StartExecution") == [
        "arn:AWS::Partition:states:AWS::Region:AWS::AccountId:stateMachine:traindyno-suites"
    ]


OURS = "arn:AWS::Partition:sagemaker:AWS::Region:AWS::AccountId"


@pytest.mark.parametrize("role", ["FunctionsReconcileRunsRole", "GuardGuardLabRole"])
def test_functions_end_endpoints_with_this_labs_tag_only(template: Template, role: str) -> None:
    statements = template.statements(role)
    of_hosting = [each for each in statements if re.search("Endpoint|Model", str(each["Action"]))]
    names = {flat(resource) for each in of_hosting for resource in as_list(each["Resource"])}
    assert all(re.fullmatch(rf"{OURS}:(model|endpoint|endpoint-config)/traindyno--\*", each) for each in names - {"*"})
    (ending,) = [each for each in statements if "sagemaker:DeleteEndpoint" in as_list(each["Action"])]
    assert ending["Condition"] == {"StringEquals": {"aws:ResourceTag/traindyno:lab": "traindyno"}}
    assert not {"sagemaker:CreateEndpoint", "iam:PassRole"} & actions_of(statements)


def test_a_served_model_reads_its_copy_and_writes_no_object(template: Template) -> None:
    statements = template.statements("ServedModelRole")
    assert {name.rpartition("Arn/")[2] for name in resources_for(statements, "s3:GetObject")} == {"models/*"}
    assert not {"s3:PutObject", "secretsmanager:GetSecretValue", "dynamodb:GetItem"} & actions_of(statements)
    images = {name.rpartition("repository/")[2] for name in resources_for(statements, "ecr:BatchGetImage")}
    assert images == {"pytorch-inference"}
    named = lab(**OTHER_LAB).statements("ServedModelRole")
    assert "secretsmanager:GetSecretValue" not in actions_of(named)
    assert set(resources_for(named, "kms:Decrypt")) == {KEY}


def test_a_permissions_boundary_bounds_every_role() -> None:
    roles = lab(**OTHER_LAB).of_type("AWS::IAM::Role")
    assert {role["PermissionsBoundary"] for role in roles.values()} == {BOUNDARY}
    assert not [role for role in lab(target="aws").of_type("AWS::IAM::Role").values() if "PermissionsBoundary" in role]


def test_jobs_in_a_vpc_with_keys_and_a_secret_may_use_them_and_others_may_not() -> None:
    further = {"secretsmanager:GetSecretValue", "kms:Decrypt", "kms:GenerateDataKey", "kms:CreateGrant"}
    plain = lab(target="aws").statements("IdentityTrainingRole")
    assert not (further | {"ec2:CreateNetworkInterface"}) & actions_of(plain)
    statements = lab(**OTHER_LAB).statements("IdentityTrainingRole")
    assert "ec2:CreateNetworkInterface" in actions_of(statements)
    assert resources_for(statements, "secretsmanager:GetSecretValue") == [SECRET]
    assert set(resources_for(statements, "kms:Decrypt")) == {KEY, f"{KEY}-of-data"}
    assert resources_for(statements, "kms:CreateGrant") == [KEY]
    assert resources_for(statements, "kms:GenerateDataKey") == [KEY]


def test_settings_of_jobs_reach_the_functions_that_plan_and_start_them() -> None:
    functions = lab(**OTHER_LAB).of_type("AWS::Lambda::Function")
    for state in ("PlanSuite", "SubmitRun"):
        (function,) = [each for name, each in functions.items() if f"Functions{state}" in name]
        jobs = read_lab_jobs(function["Environment"]["Variables"]["LAB_JOBS"])
        assert (jobs.encrypts_traffic, jobs.volume_key_arn, jobs.volume_size_gb) == (True, KEY, 200)
        assert (len(jobs.subnet_ids), jobs.tags["team"]) == (2, "vision")
