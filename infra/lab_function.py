"""The Lambda functions of a lab, each with its own role and its own log group."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.permissions import Grant, make_role
from infra.shared import architecture, python_runtime, queue_arn, seconds
from infra.storage import Storage

SHORT_SECONDS = 120


class LabFunction(Construct):
    """``construct_id`` is the state's name; ``lambdas/<the same in snake case>`` holds the handler.

    ``dead_letters`` gets events that the function failed to handle at every attempt.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        code: lambda_.Code,
        environment: Mapping[str, str],
        grants: Sequence[Grant],
        timeout: cdk.Duration,
        memory_mib: int,
        dead_letters: sqs.IQueue | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = construct_id
        log_group = logs.LogGroup(
            self, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        # The group's ARN attribute ends with ":*", its streams, so the statement itself holds no wildcard.
        log = Grant(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn])
        unhandled = [Grant(actions=["sqs:SendMessage"], resources=[queue_arn(dead_letters)])] if dead_letters else []
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=python_runtime(),
            architecture=architecture(),
            code=code,
            handler=f"lambdas.{_snake_case(construct_id)}.handler.handle",
            role=make_role(self, "Role", service="lambda.amazonaws.com", grants=[log, *unhandled, *grants]),
            environment={**environment},
            timeout=timeout,
            memory_size=memory_mib,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
        )
        if dead_letters:
            # The function's property would add a second policy to the role, which may be made too late.
            resource = self.function.node.default_child
            assert isinstance(resource, lambda_.CfnFunction)
            resource.dead_letter_config = lambda_.CfnFunction.DeadLetterConfigProperty(
                target_arn=queue_arn(dead_letters)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSetup:
    """What all functions of a lab share. ``dead_letters`` is for functions that events invoke."""

    lab: str
    code: lambda_.Code
    storage: Storage
    dead_letters: sqs.IQueue | None


class LabFunctions(Construct):
    """Base of the constructs that contain functions."""

    def __init__(self, scope: Construct, construct_id: str, setup: FunctionSetup) -> None:
        super().__init__(scope, construct_id)
        self._setup = setup

    def _function(
        self,
        state: str,
        grants: Sequence[Grant],
        *,
        timeout_seconds: int = SHORT_SECONDS,
        environment: Mapping[str, str] | None = None,
        memory_mib: int = 512,
        is_for_events: bool = False,
    ) -> LabFunction:
        return LabFunction(
            self,
            state,
            code=self._setup.code,
            environment={"LAB": self._setup.lab, **self._setup.storage.environment, **(environment or {})},
            grants=grants,
            timeout=seconds(timeout_seconds),
            memory_mib=memory_mib,
            dead_letters=self._setup.dead_letters if is_for_events else None,
        )


def _snake_case(state_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", state_name).lower()
