"""A state machine of the lab: standard, traced, with its executions' history in its own log group."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct


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
