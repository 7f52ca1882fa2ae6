"""The part of the state machine that measures: a Map over lanes, in each a Distributed Map over the runs in S3."""

from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.lab_settings import FixedConcurrency
from infra.retries import retry_faults
from infra.submit_task import submit_task


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
