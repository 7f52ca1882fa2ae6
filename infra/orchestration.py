"""The state machine that runs a suite: from its document to the verdict."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.lab_function import LabFunction, key_grants
from infra.lab_settings import FixedConcurrency
from infra.permissions import Grant, make_role
from infra.retries import THROTTLING_TRIES, retry_faults, retry_next_attempts
from infra.storage import Storage
from traindyno.core.errors import StartLater
from traindyno.core.lab_names import EXECUTION_HOURS, state_machine_name

GIVE_UP_AFTER = cdk.Duration.hours(EXECUTION_HOURS)
PER_EXECUTION = (
    "The runs are stored under their execution's prefix, which does not exist at deployment."
)
PER_RUN = "The Distributed Map names one child execution per run."
WITHOUT_RESOURCES = (
    "Actions of CloudWatch Logs delivery and X-Ray do not support resource-level permissions."
)
LOG_DELIVERY = (
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
)
TRACING = (
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
)


class Orchestration(Construct):
    """The state machine with its role and its log.

    If a ``concurrency`` is given, it replaces the one of the plan.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        functions: Functions,
        storage: Storage,
        concurrency: FixedConcurrency | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self._storage = storage
        self._concurrency = concurrency
        name = state_machine_name(lab)
        role = self._role()
        log_group = logs.LogGroup(
            self,
            "Logs",
            # Vended log groups don't use up the account's limit on resource policies.
            log_group_name=f"/aws/vendedlogs/states/{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.state_machine = sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=name,
            definition_body=sfn.DefinitionBody.from_chainable(self._definition()),
            timeout=GIVE_UP_AFTER,
            tracing_enabled=True,
            logs=sfn.LogOptions(
                destination=log_group, level=sfn.LogLevel.ALL, include_execution_data=False
            ),
            removal_policy=cdk.RemovalPolicy.DESTROY,
            role=role.without_policy_updates(),
        )
        self.state_machine.node.add_dependency(role)
        # The CDK adds a grant for children, which the role already holds under the machine's fixed
        # name.
        self.state_machine.node.try_remove_child("DistributedMapPolicy")

    def _role(self) -> iam.Role:
        """The CDK's own grants would reach every version of each function and the whole bucket."""
        functions = self._functions
        steps = (
            functions.plan_suite,
            functions.check_quotas,
            functions.plan_round,
            functions.submit_run,
            functions.record_run,
            functions.judge_suite,
        )
        executions = functions.state_machine_arn.replace(":stateMachine:", ":execution:")
        grants = [
            Grant(
                actions=["lambda:InvokeFunction"],
                resources=[step.function.function_arn for step in steps],
            ),
            Grant(
                actions=["s3:GetObject"],
                resources=[f"{self._storage.bucket_arn}/suites/*"],
                wildcard_reason=PER_EXECUTION,
            ),
            Grant(actions=["states:StartExecution"], resources=[functions.state_machine_arn]),
            Grant(
                actions=[
                    "states:DescribeExecution",
                    "states:RedriveExecution",
                    "states:StopExecution",
                ],
                resources=[f"{executions}:*", f"{executions}/*"],
                wildcard_reason=PER_RUN,
            ),
            Grant(
                actions=[*LOG_DELIVERY, *TRACING],
                resources=["*"],
                wildcard_reason=WITHOUT_RESOURCES,
            ),
        ]
        return make_role(
            self,
            "Role",
            service="states.amazonaws.com",
            trust_conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            grants=[*grants, *key_grants(self._storage, grants)],
        )

    def _definition(self) -> sfn.IChainable:
        suite = {
            "execution_id": sfn.JsonPath.string_at("$$.Execution.Name"),
            "suite": sfn.JsonPath.entire_payload,
        }
        plan_suite = self._answered_step(
            "PlanSuite", self._functions.plan_suite, payload=sfn.TaskInput.from_object(suite)
        )
        check_quotas = self._answered_step("CheckQuotas", self._functions.check_quotas)
        plan_round = self._answered_step("PlanRound", self._functions.plan_round)
        judge_suite = self._answered_step("JudgeSuite", self._functions.judge_suite)
        # Handlers answer with a refusal, because a raised error would arrive as JSON text with a
        # traceback.
        reject = sfn.Fail(
            self,
            "SuiteRejected",
            state_name="SuiteRejected",
            error_path=sfn.JsonPath.string_at("$.refused.error"),
            cause_path=sfn.JsonPath.string_at("$.refused.cause"),
        )
        # One job for each set of tokens. If a job fails, the execution fails with the job's
        # message.
        prepare = self._map("PrepareData", items_path="$.preparations", max_concurrency=1)
        prepare.item_processor(self._submit_task("SubmitPreparation"))
        planned, allowed, more = (
            sfn.Choice(self, name, state_name=name) for name in ("Planned", "Allowed", "RunsLeft")
        )
        is_refused = sfn.Condition.is_present("$.refused")
        plan_suite.next(planned.when(is_refused, reject).otherwise(check_quotas))
        check_quotas.next(allowed.when(is_refused, reject).otherwise(plan_round))
        allowed.when(sfn.Condition.is_present("$.preparations"), prepare.next(plan_round))
        more.when(sfn.Condition.is_present("$.lanes[0]"), self._run_lanes().next(plan_round))
        plan_round.next(more.otherwise(judge_suite))
        return plan_suite

    def _run_lanes(self) -> sfn.Map:
        """Three maps within each other: over lanes, over a lane's waves, and over a wave's jobs.

        A wave uses all instances that its lane may have. The innermost is a Distributed Map over
        the runs and shared jobs in S3.
        """
        submit = self._submit_task("SubmitRun")
        fixed = self._concurrency
        # A call that is cut off has recorded some runs of its job; the next one does the rest.
        record = self._answered_step(
            "RecordRun", self._functions.record_run, fault_tries=THROTTLING_TRIES
        )
        # A failure takes the place of the job's end, so that both reach the runs in one field. A
        # run that can't be recorded fails the child execution; the verdict names it.
        submit.add_catch(record, errors=["States.ALL"], result_path="$.end")
        runs = sfn.DistributedMap(
            self,
            "RunLane",
            state_name="RunLane",
            label="RunLane",
            item_reader=sfn.S3JsonItemReader(
                bucket=self._storage.results, key=sfn.JsonPath.string_at("$.items_key")
            ),
            max_concurrency=fixed.runs if fixed else None,
            max_concurrency_path=None if fixed else "$.concurrency",
            tolerated_failure_percentage=100,
            map_execution_type=sfn.StateMachineType.STANDARD,
            result_path=sfn.JsonPath.DISCARD,
        )
        runs.item_processor(submit.next(record))
        waves = self._map("RunWaves", items_path="$.packs", max_concurrency=1).item_processor(runs)
        lanes = self._map(
            "RunLanes",
            items_path="$.lanes",
            max_concurrency=fixed.lanes if fixed else None,
            max_concurrency_path=None if fixed else "$.lanes_at_once",
        )
        return lanes.item_processor(waves)

    def _map(
        self,
        name: str,
        *,
        items_path: str,
        max_concurrency: int | None,
        max_concurrency_path: str | None = None,
    ) -> sfn.Map:
        return sfn.Map(
            self,
            name,
            state_name=name,
            items_path=items_path,
            max_concurrency=max_concurrency,
            max_concurrency_path=max_concurrency_path,
            result_path=sfn.JsonPath.DISCARD,
        )

    def _submit_task(self, name: str) -> tasks.LambdaInvoke:
        """Submits a job and waits for its task token, which FinishRun answers when the job ends.

        The item says what the job is for, in its field ``run``, ``job`` or ``preparation``.
        """
        submit = tasks.LambdaInvoke(
            self,
            name,
            state_name=name,
            lambda_function=self._functions.submit_run.function,
            integration_pattern=sfn.IntegrationPattern.WAIT_FOR_TASK_TOKEN,
            payload=sfn.TaskInput.from_object(
                {"token": sfn.JsonPath.task_token, "item": sfn.JsonPath.entire_payload}
            ),
            retry_on_service_exceptions=False,
            result_path="$.end",
            task_timeout=sfn.Timeout.at("$.timeout_seconds"),
        )
        retry_next_attempts(submit)
        # The job's start slot is JSON text in the error's cause: only JSONata reads it.
        slot = sfn.WaitTime.timestamp("{% $parse($states.input.later.Cause).at %}")
        later = sfn.Wait.jsonata(self, f"{name}Later", state_name=f"{name}Later", time=slot)
        submit.add_catch(later.next(submit), errors=[StartLater.__name__], result_path="$.later")
        return submit

    def _answered_step(
        self,
        name: str,
        function: LabFunction,
        *,
        payload: sfn.TaskInput | None = None,
        fault_tries: int = 8,
    ) -> tasks.LambdaInvoke:
        """The function's answer is the state's output. Faults are retried."""
        step = tasks.LambdaInvoke(
            self,
            name,
            state_name=name,
            lambda_function=function.function,
            payload=payload,
            payload_response_only=True,
            retry_on_service_exceptions=False,
        )
        retry_faults(step, fault_tries)
        return step
