"""The state machine that runs a suite: from its document to the verdict."""

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.lab_function import LabFunction
from infra.lab_machine import make_machine
from infra.lab_settings import FixedConcurrency
from infra.retries import retry_faults
from infra.run_lanes import RunLanes, submit_task
from infra.state_machine_role import state_machine_role
from traindyno.core.lab_names import state_machine_name

GIVE_UP_AFTER = cdk.Duration.days(28)


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


class Orchestration(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        functions: Functions,
        results: s3.IBucket,
        concurrency: FixedConcurrency | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self._lanes = RunLanes(self, "Lanes", functions=functions, results=results, concurrency=concurrency)
        role = state_machine_role(self, "Role", functions=functions, results=results)
        self.state_machine = make_machine(
            self, name=state_machine_name(lab), definition=self._definition(), role=role, timeout=GIVE_UP_AFTER
        )
        # The CDK's own grant for children, which the role above already holds under the machine's fixed name.
        self.state_machine.node.try_remove_child("DistributedMapPolicy")

    def _definition(self) -> sfn.IChainable:
        plan_suite = self._step(
            "PlanSuite",
            self._functions.plan_suite,
            {"execution_id": sfn.JsonPath.string_at("$$.Execution.Name"), "suite": sfn.JsonPath.entire_payload},
        )
        check_quotas = self._step("CheckQuotas", self._functions.check_quotas)
        plan_round = self._step("PlanRound", self._functions.plan_round)
        judge_suite = self._step("JudgeSuite", self._functions.judge_suite)
        reject = self._rejection()
        planned = self._choice("Planned", refused=reject, accepted=check_quotas)
        prepare = PrepareData(self, "Preparation", functions=self._functions).state
        allowed = self._choice("Allowed", refused=reject, accepted=plan_round)
        allowed.when(sfn.Condition.is_present("$.preparations"), prepare.next(plan_round))
        more = sfn.Choice(self, "RunsLeft", state_name="RunsLeft")
        more.when(sfn.Condition.is_present("$.lanes[0]"), self._lanes.state.next(plan_round))
        more.otherwise(judge_suite)
        plan_suite.next(planned)
        check_quotas.next(allowed)
        plan_round.next(more)
        return plan_suite

    def _choice(self, name: str, *, refused: sfn.IChainable, accepted: sfn.IChainable) -> sfn.Choice:
        choice = sfn.Choice(self, name, state_name=name)
        return choice.when(sfn.Condition.is_present("$.refused"), refused).otherwise(accepted)

    def _step(self, name: str, function: LabFunction, payload: dict[str, str] | None = None) -> tasks.LambdaInvoke:
        step = tasks.LambdaInvoke(
            self,
            name,
            state_name=name,
            lambda_function=function.function,
            payload=sfn.TaskInput.from_object(payload) if payload else None,
            payload_response_only=True,
            retry_on_service_exceptions=False,
        )
        retry_faults(step)
        return step

    def _rejection(self) -> sfn.Fail:
        # Handlers answer with a refusal: a raised error would arrive as JSON text with a traceback.
        return sfn.Fail(
            self,
            "SuiteRejected",
            state_name="SuiteRejected",
            error_path=sfn.JsonPath.string_at("$.refused.error"),
            cause_path=sfn.JsonPath.string_at("$.refused.cause"),
        )
