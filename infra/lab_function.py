"""One Lambda function of the lab: its own role, its own log group, and nothing that it doesn't use."""

import re
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.permissions import allow


class LabFunction(Construct):
    """``construct_id`` is the state's name; ``lambdas/<the same in snake case>`` holds the handler."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        code: lambda_.Code,
        environment: Mapping[str, str],
        timeout: cdk.Duration,
        memory_mib: int = 256,
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(
            self, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        # The group's ARN attribute ends with ":*", its streams, so the statement itself holds no wildcard.
        self.allow(["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn])
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            code=code,
            handler=f"lambdas.{_snake_case(construct_id)}.handler.handle",
            role=self.role,
            environment={**environment},
            timeout=timeout,
            memory_size=memory_mib,
            log_group=log_group,
        )

    def allow(self, actions: Sequence[str], resources: Sequence[str], wildcard_reason: str | None = None) -> None:
        allow(self.role, actions, resources, wildcard_reason=wildcard_reason)


def _snake_case(state_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", state_name).lower()
