"""What the state machine itself may do: invoke its functions, read items, start and stop its own children."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.functions import Functions
from infra.permissions import allow

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


def state_machine_role(scope: Construct, construct_id: str, *, functions: Functions, results: s3.IBucket) -> iam.Role:
    """The CDK's own grants would reach every version of each function and the whole bucket."""
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal(
            "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
        ),
    )
    steps = (
        functions.plan_suite,
        functions.check_quotas,
        functions.plan_round,
        functions.submit_run,
        functions.record_run,
        functions.judge_suite,
    )
    allow(role, ["lambda:InvokeFunction"], [step.function.function_arn for step in steps])
    allow(
        role,
        ["s3:GetObject"],
        [results.arn_for_objects("suites/*")],
        wildcard_reason="The runs of a round lie under their execution's prefix, which begins after deployment.",
    )
    _allow_children(role, functions.state_machine_arn)
    nothing_narrower = "CloudWatch Logs delivery and X-Ray know no resources for these actions."
    allow(role, LOG_DELIVERY + TRACING, ["*"], wildcard_reason=nothing_narrower)
    return role


def _allow_children(role: iam.Role, state_machine_arn: str) -> None:
    executions = state_machine_arn.replace(":stateMachine:", ":execution:")
    allow(role, ["states:StartExecution"], [state_machine_arn])
    allow(
        role,
        ["states:DescribeExecution", "states:RedriveExecution", "states:StopExecution"],
        [f"{executions}:*", f"{executions}/*"],
        wildcard_reason="The Distributed Map names one child execution per run.",
    )
