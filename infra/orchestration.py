"""The state machine that carries a suite from its document to a verdict."""

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.lab_function import LabFunction
from infra.lab_settings import FixedConcurrency
from infra.retries import retry_lambda_faults
from infra.run_lanes import RunLanes
from infra.state_machine_role import state_machine_role
from traindyno.core.errors import SuiteInvalid, SuiteRefused
from traindyno.core.lab import state_machine_name

GIVE_UP_AFTER = cdk.Duration.days(28)


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
        self.state_machine = sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=state_machine_name(lab),
            definition_body=sfn.DefinitionBody.from_chainable(self._definition()),
            timeout=GIVE_UP_AFTER,
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=self._log_group(lab), level=sfn.LogLevel.ALL, include_execution_data=False),
            removal_policy=cdk.RemovalPolicy.DESTROY,
            role=role.without_policy_updates(),
        )
        self.state_machine.node.add_dependency(role)
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
        refuse = self._refusal()
        for step in (plan_suite, check_quotas):
            step.add_catch(refuse, errors=[SuiteInvalid.__name__, SuiteRefused.__name__])
        more = sfn.Choice(self, "RunsLeft", state_name="RunsLeft")
        more.when(sfn.Condition.is_present("$.lanes[0]"), self._lanes.state.next(plan_round))
        more.otherwise(judge_suite)
        return plan_suite.next(check_quotas).next(plan_round).next(more)

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
        retry_lambda_faults(step)
        return step

    def _refusal(self) -> sfn.IChainable:
        # A function's error arrives as text that holds JSON; its message is the list of everything that is wrong.
        read = sfn.Pass(
            self,
            "ReadRefusal",
            state_name="ReadRefusal",
            parameters={
                "error": sfn.JsonPath.string_at("$.Error"),
                "raised": sfn.JsonPath.string_to_json(sfn.JsonPath.string_at("$.Cause")),
            },
        )
        fail = sfn.Fail(
            self,
            "SuiteRejected",
            state_name="SuiteRejected",
            error_path=sfn.JsonPath.string_at("$.error"),
            cause_path=sfn.JsonPath.string_at("$.raised.errorMessage"),
        )
        return read.next(fail)

    def _log_group(self, lab: str) -> logs.LogGroup:
        # Vended log groups don't use up the account's limit on resource policies.
        return logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/vendedlogs/states/{state_machine_name(lab)}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
