"""The part of the state machine that measures: a Map over lanes, in each a Distributed Map over the runs in S3."""

from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.lab_settings import FixedConcurrency
from infra.retries import retry_faults, retry_next_attempts
from traindyno.core.errors import StartLater


class RunLanes(Construct):
    """``concurrency`` replaces what the plan of the suite says; None leaves it to the plan."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Functions,
        results: s3.IBucket,
        concurrency: FixedConcurrency | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        runs = sfn.DistributedMap(
            self,
            "RunLane",
            state_name="RunLane",
            label="RunLane",
            item_reader=sfn.S3JsonItemReader(bucket=results, key=sfn.JsonPath.string_at("$.items_key")),
            max_concurrency=concurrency.runs if concurrency else None,
            max_concurrency_path=None if concurrency else "$.concurrency",
            tolerated_failure_percentage=100,
            map_execution_type=sfn.StateMachineType.STANDARD,
            result_path=sfn.JsonPath.DISCARD,
        )
        runs.item_processor(self._run())
        self.state = sfn.Map(
            self,
            "RunLanes",
            state_name="RunLanes",
            items_path="$.lanes",
            max_concurrency=concurrency.lanes if concurrency else None,
            max_concurrency_path=None if concurrency else "$.lanes_at_once",
            result_path=sfn.JsonPath.DISCARD,
        )
        self.state.item_processor(self._one_after_another(runs))

    def _one_after_another(self, runs: sfn.DistributedMap) -> sfn.Map:
        """The packs of a lane: each holds all the instances that the lane may have."""
        packs = sfn.Map(
            self,
            "RunPacks",
            state_name="RunPacks",
            items_path="$.packs",
            max_concurrency=1,
            result_path=sfn.JsonPath.DISCARD,
        )
        return packs.item_processor(runs)

    def _run(self) -> sfn.IChainable:
        submit = submit_task(self, "SubmitRun", self._functions, owner="run")
        record = tasks.LambdaInvoke(
            self,
            "RecordRun",
            state_name="RecordRun",
            lambda_function=self._functions.record_run.function,
            payload_response_only=True,
            retry_on_service_exceptions=False,
        )
        retry_faults(record)
        submit.add_catch(record, errors=["States.ALL"], result_path="$.failure")
        return submit.next(record)


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
