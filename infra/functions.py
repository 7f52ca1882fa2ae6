"""The nine functions of the lab, each with the actions and resources that its handler uses and no others."""

from collections.abc import Mapping
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.identity import JOB_LOG_GROUP
from infra.lab_function import LabFunction
from infra.notifications import Notifications
from infra.storage import Storage
from traindyno.core.lab import OPEN_ATTEMPTS_INDEX, state_machine_name

SHORT = cdk.Duration.seconds(30)
LONG = cdk.Duration.minutes(5)
SWEEP = cdk.Duration.minutes(15)
PER_EXECUTION = "Objects and rows are named after executions, which begin after deployment."
PER_JOB = "Jobs are named after suite, run and attempt; the lab's name in front keeps other labs' jobs out."
NO_RESOURCES = "The action knows no resources."


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What every training job of the lab is started with."""

    training_role: iam.IRole
    source_s3_uri: str
    image_uris: Mapping[str, str]


class Functions(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        code: lambda_.Code,
        storage: Storage,
        notifications: Notifications,
        launch: Launch,
    ) -> None:
        super().__init__(scope, construct_id)
        self._code = code
        self._lab = lab
        self._storage = storage
        self.state_machine_arn = cdk.Stack.of(self).format_arn(
            service="states",
            resource="stateMachine",
            resource_name=state_machine_name(lab),
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        self.plan_suite = self._plan_suite()
        self.check_quotas = self._check_quotas()
        self.plan_round = self._plan_round()
        self.submit_run = self._submit_run(launch)
        self.finish_run = self._finish_run()
        self.record_run = self._record_run()
        self.reconcile_runs = self._reconcile_runs()
        self.stop_runs = self._stop_runs()
        self.judge_suite = self._judge_suite(notifications)

    def _plan_suite(self) -> LabFunction:
        function = self._function("PlanSuite", LONG, memory_mib=512)
        self._allow_objects(function, reads=False, writes=True)
        self._allow_rows(function, "PutItem")
        function.allow(["pricing:GetProducts"], ["*"], NO_RESOURCES)
        return function

    def _check_quotas(self) -> LabFunction:
        function = self._function("CheckQuotas", LONG)
        self._allow_objects(function, reads=True, writes=True)
        function.allow(
            ["servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota"], ["*"], NO_RESOURCES
        )
        function.allow(["cloudwatch:GetMetricStatistics"], ["*"], NO_RESOURCES)
        return function

    def _plan_round(self) -> LabFunction:
        function = self._function("PlanRound", LONG, memory_mib=512)
        self._allow_objects(function, reads=True, writes=True)
        return function

    def _submit_run(self, launch: Launch) -> LabFunction:
        function = self._function(
            "SubmitRun",
            SHORT,
            environment={
                "TRAINING_ROLE_ARN": launch.training_role.role_arn,
                "SOURCE_S3_URI": launch.source_s3_uri,
                **{f"{name.upper()}_IMAGE_URI": uri for name, uri in launch.image_uris.items()},
            },
        )
        self._allow_objects(function, reads=True, writes=False)
        self._allow_rows(function, "GetItem", "PutItem", "UpdateItem", "DeleteItem")
        self._allow_jobs(function, "CreateTrainingJob", "AddTags")
        self._allow_task_answers(function)
        self._allow_pass_role(function, launch.training_role)
        return function

    def _finish_run(self) -> LabFunction:
        function = self._function("FinishRun", LONG, memory_mib=512)
        self._allow_finishing(function)
        return function

    def _record_run(self) -> LabFunction:
        function = self._function("RecordRun", LONG, memory_mib=1024)
        self._allow_recording(function)
        return function

    def _reconcile_runs(self) -> LabFunction:
        function = self._function(
            "ReconcileRuns", SWEEP, memory_mib=512, environment={"STATE_MACHINE_ARN": self.state_machine_arn}
        )
        self._allow_finishing(function)
        self._allow_open_attempts(function)
        function.allow(["sagemaker:ListTrainingJobs"], ["*"], NO_RESOURCES)
        executions = cdk.Stack.of(self).format_arn(
            service="states",
            resource="execution",
            resource_name=f"{state_machine_name(self._lab)}:*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        function.allow(["states:DescribeExecution"], [executions], PER_EXECUTION)
        return function

    def _stop_runs(self) -> LabFunction:
        function = self._function("StopRuns", SWEEP)
        self._allow_open_attempts(function)
        self._allow_rows(function, "UpdateItem")
        self._allow_jobs(function, "StopTrainingJob")
        return function

    def _judge_suite(self, notifications: Notifications) -> LabFunction:
        topic_arn = notifications.topic.topic_arn
        function = self._function("JudgeSuite", LONG, memory_mib=1024, environment={"TOPIC_ARN": topic_arn})
        self._allow_objects(function, reads=True, writes=True)
        self._allow_rows(function, "UpdateItem")
        function.allow(["sns:Publish"], [topic_arn])
        function.allow(["kms:Decrypt", "kms:GenerateDataKey"], [notifications.key.key_arn])
        bus = cdk.Stack.of(self).format_arn(service="events", resource="event-bus", resource_name="default")
        function.allow(["events:PutEvents"], [bus])
        return function

    def _function(
        self,
        state: str,
        timeout: cdk.Duration,
        *,
        memory_mib: int = 256,
        environment: Mapping[str, str] | None = None,
    ) -> LabFunction:
        shared = {
            "LAB": self._lab,
            "BUCKET": self._storage.results.bucket_name,
            "TABLE": self._storage.table.table_name,
        }
        return LabFunction(
            self,
            state,
            code=self._code,
            environment={**shared, **(environment or {})},
            timeout=timeout,
            memory_mib=memory_mib,
        )

    def _allow_finishing(self, function: LabFunction) -> None:
        self._allow_recording(function)
        self._allow_jobs(function, "DescribeTrainingJob")
        self._allow_task_answers(function)

    def _allow_recording(self, function: LabFunction) -> None:
        streams = cdk.Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{JOB_LOG_GROUP}:*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        function.allow(["logs:DescribeLogStreams", "logs:GetLogEvents"], [streams], PER_JOB)
        self._allow_jobs(function, "StopTrainingJob")
        self._allow_objects(function, reads=True, writes=True)
        self._allow_rows(function, "GetItem", "UpdateItem")

    def _allow_objects(self, function: LabFunction, *, reads: bool, writes: bool) -> None:
        results = self._storage.results
        actions = ["s3:GetObject"] * reads + ["s3:PutObject"] * writes
        function.allow(actions, [results.arn_for_objects("suites/*")], PER_EXECUTION)
        if reads:
            function.allow(["s3:ListBucket"], [results.bucket_arn])

    def _allow_rows(self, function: LabFunction, *operations: str) -> None:
        function.allow([f"dynamodb:{operation}" for operation in operations], [self._storage.table.table_arn])

    def _allow_open_attempts(self, function: LabFunction) -> None:
        index = f"{self._storage.table.table_arn}/index/{OPEN_ATTEMPTS_INDEX}"
        function.allow(["dynamodb:Query"], [index])

    def _allow_jobs(self, function: LabFunction, *operations: str) -> None:
        ours = cdk.Stack.of(self).format_arn(
            service="sagemaker", resource="training-job", resource_name=f"{self._lab}-*"
        )
        function.allow([f"sagemaker:{operation}" for operation in operations], [ours], PER_JOB)

    def _allow_task_answers(self, function: LabFunction) -> None:
        # A task token of a Distributed Map's child belongs to the state machine's ARN with the Map's label behind it.
        function.allow(
            ["states:SendTaskSuccess", "states:SendTaskFailure"],
            [self.state_machine_arn, f"{self.state_machine_arn}/*"],
            "Child executions of the Distributed Map bear the state machine's ARN and the Map's label.",
        )

    def _allow_pass_role(self, function: LabFunction, training_role: iam.IRole) -> None:
        function.role.add_to_policy(
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[training_role.role_arn],
                conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
            )
        )
