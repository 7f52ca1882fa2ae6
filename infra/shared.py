"""Values of the CDK that many constructs share: each access is a message to the CDK's process."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TypeVar, cast

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

KEPT = 64  # values of the constructs of one lab
Given = TypeVar("Given")
Made = TypeVar("Made")


def _once_per_value(make: Callable[[Given], Made]) -> Callable[[Given], Made]:
    # The CDK's interfaces are protocols, which don't say that their objects are hashable.
    return cast("Callable[[Given], Made]", lru_cache(KEPT)(make))


@cache
def seconds(count: int) -> cdk.Duration:
    return cdk.Duration.seconds(count)


@cache
def days(count: int) -> cdk.Duration:
    return cdk.Duration.days(count)


@cache
def discarded() -> str:
    """As a state's result path: its output is its input."""
    return sfn.JsonPath.DISCARD


@cache
def entire_input() -> str:
    return sfn.JsonPath.entire_payload


@cache
def task_token() -> str:
    return sfn.JsonPath.task_token


@cache
def python_runtime() -> lambda_.Runtime:
    return lambda_.Runtime.PYTHON_3_14


@cache
def architecture() -> lambda_.Architecture:
    return lambda_.Architecture.ARM_64


@cache
def principal(service: str) -> iam.ServicePrincipal:
    return iam.ServicePrincipal(service)


@_once_per_value
def queue_arn(queue: sqs.IQueue) -> str:
    return queue.queue_arn


@_once_per_value
def sns_action(topic: sns.ITopic) -> actions.SnsAction:
    return actions.SnsAction(topic)


@_once_per_value
def _place(stack: cdk.Stack) -> tuple[str, str, str]:
    return stack.partition, stack.region, stack.account


def arn(stack: cdk.Stack, service: str, resource: str, *, account: str | None = None) -> str:
    """The ARN of a resource, as ``format_arn`` makes it; ``account`` of None: the stack's own."""
    partition, region, own_account = _place(stack)
    return f"arn:{partition}:{service}:{region}:{account or own_account}:{resource}"
