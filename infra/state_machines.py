"""The parts of the state machines: the machine with its log group, its role, and the states that invoke functions."""

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.lab_function import LabFunction, key_grants
from infra.permissions import Grant, make_role
from infra.retries import retry_faults
from infra.storage import Storage


def make_machine(
    scope: Construct, *, name: str, definition: sfn.IChainable, role: iam.Role, timeout: cdk.Duration
) -> sfn.StateMachine:
    machine = sfn.StateMachine(
        scope,
        "StateMachine",
        state_machine_name=name,
        definition_body=sfn.DefinitionBody.from_chainable(definition),
        timeout=timeout,
        tracing_enabled=True,
        logs=sfn.LogOptions(destination=_log_group(scope, name), level=sfn.LogLevel.ALL, include_execution_data=False),
        removal_policy=cdk.RemovalPolicy.DESTROY,
        role=role.without_policy_updates(),
    )
    machine.node.add_dependency(role)
    return machine


def _log_group(scope: Construct, name: str) -> logs.LogGroup:
    # Vended log groups don't use up the account's limit on resource policies.
    return logs.LogGroup(
        scope,
        "Logs",
        log_group_name=f"/aws/vendedlogs/states/{name}",
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )


LOG_DELIVERY = (
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
)
TRACING = (
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
)


def state_machine_role(scope: Construct, construct_id: str, *, functions: Functions, storage: Storage) -> iam.Role:
    """The CDK's own grants would reach every version of each function and the whole bucket."""
    steps = (
        functions.plan_suite,
        functions.check_quotas,
        functions.plan_round,
        functions.submit_run,
        functions.record_run,
        functions.judge_suite,
    )
    executions = functions.state_machine_arn.replace(":stateMachine:", ":execution:")
    grants = [
        Grant(actions=["lambda:InvokeFunction"], resources=[step.function.function_arn for step in steps]),
        Grant(
            actions=["s3:GetObject"],
            resources=[f"{storage.bucket_arn}/suites/*"],
            wildcard_reason="The runs are stored under their execution's prefix, which does not exist at deployment.",
        ),
        Grant(actions=["states:StartExecution"], resources=[functions.state_machine_arn]),
        Grant(
            actions=["states:DescribeExecution", "states:RedriveExecution", "states:StopExecution"],
            resources=[f"{executions}:*", f"{executions}/*"],
            wildcard_reason="The Distributed Map names one child execution per run.",
        ),
        Grant(
            actions=[*LOG_DELIVERY, *TRACING],
            resources=["*"],
            wildcard_reason="Actions of CloudWatch Logs delivery and X-Ray do not support resource-level permissions.",
        ),
    ]
    return make_role(
        scope,
        construct_id,
        service="states.amazonaws.com",
        trust_conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
        grants=[*grants, *key_grants(storage, grants)],
    )


Payload = Mapping[str, object]


def answered_step(
    scope: Construct,
    name: str,
    function: LabFunction,
    *,
    payload: Payload | None = None,
    fault_tries: int = 8,
) -> tasks.LambdaInvoke:
    """The function's answer is the state's output. Faults are retried."""
    step = tasks.LambdaInvoke(
        scope,
        name,
        state_name=name,
        lambda_function=function.function,
        payload=sfn.TaskInput.from_object(dict(payload)) if payload else None,
        payload_response_only=True,
        retry_on_service_exceptions=False,
    )
    retry_faults(step, fault_tries)
    return step


def waiting_step(
    scope: Construct, name: str, function: LabFunction, *, payload: Payload, result_path: str, timeout: sfn.Timeout
) -> tasks.LambdaInvoke:
    """The function gets ``payload`` with the task token, with which another function ends the state later."""
    return tasks.LambdaInvoke(
        scope,
        name,
        state_name=name,
        lambda_function=function.function,
        integration_pattern=sfn.IntegrationPattern.WAIT_FOR_TASK_TOKEN,
        payload=sfn.TaskInput.from_object({"token": sfn.JsonPath.task_token, **payload}),
        retry_on_service_exceptions=False,
        result_path=result_path,
        task_timeout=timeout,
    )
