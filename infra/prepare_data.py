"""The part of the state machine that tokenises a suite's dataset, unless its tokens exist already."""

from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.functions import Functions
from infra.submit_task import submit_task


class PrepareData(Construct):
    """One job for each set of tokens, one after another. Its failure is the execution's, with the job's own message."""

    def __init__(self, scope: Construct, construct_id: str, *, functions: Functions) -> None:
        super().__init__(scope, construct_id)
        self.state = sfn.Map(
            self,
            "PrepareData",
            state_name="PrepareData",
            items_path="$.preparations",
            max_concurrency=1,
            result_path=sfn.JsonPath.DISCARD,
        )
        self.state.item_processor(submit_task(self, "SubmitPreparation", functions, owner="preparation"))
