"""States that invoke a Lambda function: one that takes its answer, and one that waits for a task token."""

from collections.abc import Mapping

from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.lab_function import LabFunction
from infra.retries import retry_faults
from infra.shared import task_token

Payload = Mapping[str, object]


def answered_step(
    scope: Construct,
    name: str,
    function: LabFunction,
    *,
    payload: Payload | None = None,
    result_path: str | None = None,
) -> tasks.LambdaInvoke:
    """The function's answer is the state's output, or goes to ``result_path``. Faults are retried."""
    step = tasks.LambdaInvoke(
        scope,
        name,
        state_name=name,
        lambda_function=function.function,
        payload=sfn.TaskInput.from_object(dict(payload)) if payload else None,
        payload_response_only=True,
        retry_on_service_exceptions=False,
        result_path=result_path,
    )
    retry_faults(step)
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
        payload=sfn.TaskInput.from_object({"token": task_token(), **payload}),
        retry_on_service_exceptions=False,
        result_path=result_path,
        task_timeout=timeout,
    )
