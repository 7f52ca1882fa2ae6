"""The permissions of the state machine: invoke its functions, read items, start and stop its own child executions."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.functions import Functions
from infra.permissions import Grant, make_role

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
            resources=[f"{results.bucket_arn}/suites/*"],
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
        grants=grants,
    )
