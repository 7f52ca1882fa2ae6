"""A task state that submits a job and waits for its task token; the end of the job sends the token."""

from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.retries import retry_next_attempts
from traindyno.core.errors import StartLater


def submit_task(scope: Construct, name: str, functions: Functions, *, owner: str) -> tasks.LambdaInvoke:
    """``owner``: the field of the item that says what the job is for, ``run`` or ``preparation``."""
    submit = tasks.LambdaInvoke(
        scope,
        name,
        state_name=name,
        lambda_function=functions.submit_run.function,
        integration_pattern=sfn.IntegrationPattern.WAIT_FOR_TASK_TOKEN,
        payload=sfn.TaskInput.from_object(
            {
                "token": sfn.JsonPath.task_token,
                owner: sfn.JsonPath.object_at(f"$.{owner}"),
            }
        ),
        retry_on_service_exceptions=False,
        result_path="$.end",
        task_timeout=sfn.Timeout.at("$.timeout_seconds"),
    )
    retry_next_attempts(submit)
    submit.add_catch(_later(scope, name, submit), errors=[StartLater.__name__], result_path="$.later")
    return submit


def _later(scope: Construct, name: str, submit: tasks.LambdaInvoke) -> sfn.IChainable:
    """Wait for the job's start slot. The error's cause has it as JSON text, which only JSONata can read."""
    at = "{% $parse($states.input.later.Cause).at %}"
    wait = sfn.Wait.jsonata(scope, f"{name}Later", state_name=f"{name}Later", time=sfn.WaitTime.timestamp(at))
    return wait.next(submit)
