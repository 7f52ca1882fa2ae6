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
from infra.storage import Storage

SHORT_SECONDS = 120


class LabFunction(Construct):
    """A function with its role and its log group.

    Its ``construct_id`` is the name of its state, which in snake case is the folder of its handler
    in lambdas/. The queue ``dead_letters`` gets the events that the function failed to handle at
    every attempt.
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
        dead_letters: sqs.IQueue | None,
        function_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = construct_id
        folder = re.sub(r"(?<!^)(?=[A-Z])", "_", construct_id).lower()
        log_group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        # The group's ARN attribute ends with ":*", its streams, so the statement itself holds no
        # wildcard.
        log = Grant(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        )
        unhandled = (
            [Grant(actions=["sqs:SendMessage"], resources=[dead_letters.queue_arn])]
            if dead_letters
            else []
        )
        role = make_role(
            self, "Role", service="lambda.amazonaws.com", grants=[log, *unhandled, *grants]
        )
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=function_name,
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            code=code,
            handler=f"lambdas.{folder}.handler.handle",
            # The CDK would add a second policy for the queue, which may be made too late.
            role=role.without_policy_updates(),
            dead_letter_queue=dead_letters,
            environment={**environment},
            timeout=timeout,
            memory_size=memory_mib,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSetup:
    """What all functions of a lab share."""

    lab: str
    code: lambda_.Code
    storage: Storage
    #: The queue of the functions that events invoke; None in the local cloud.
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
            environment={
                "LAB": self._setup.lab,
                **self._setup.storage.environment,
                **(environment or {}),
            },
            grants=[*grants, *key_grants(self._setup.storage, grants)],
            timeout=cdk.Duration.seconds(timeout_seconds),
            memory_mib=memory_mib,
            dead_letters=self._setup.dead_letters if is_for_events else None,
        )


def key_grants(storage: Storage, grants: Sequence[Grant]) -> list[Grant]:
    """The use of the key that encrypts the results bucket, by a role that reads or writes objects
    there.
    """
    used: set[str] = set()
    for grant in grants:
        if grant.resources[0].startswith(storage.bucket_arn):
            used.update(grant.actions)
    actions = []
    if "s3:GetObject" in used:
        actions.append("kms:Decrypt")
    if "s3:PutObject" in used:
        actions.append("kms:GenerateDataKey")
    if not storage.key_arn or not actions:
        return []
    return [Grant(actions=actions, resources=[storage.key_arn])]
