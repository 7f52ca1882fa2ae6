"""The lab's functions for states and events, with the grants that each handler needs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.lab_function import FunctionSetup, LabFunction, LabFunctions
from infra.lab_grants import LabGrants, pass_role, without_resources
from infra.notifications import Notifications
from infra.permissions import Grant, arn
from infra.serving import ending_endpoints
from traindyno.core.lab_names import image_parameter
from traindyno.sagemaker.job_settings import LAB_JOBS_VARIABLE, LabJobs, write_lab_jobs

LONG_SECONDS = 300
LONGEST_SECONDS = 900
# Two sweeps of the schedule, five minutes apart, do not overlap.
SWEEP_SECONDS = 280
# A run's step log is read whole, by RecordRun and, of a stopped execution, by FinishRun and the
# sweep; a line takes about 9 µs of a core and 64 bytes, so that they read 20 million. New accounts
# have no larger functions.
RECORDING_MIB = 3008


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The settings of every training job of the lab."""

    training_role: iam.IRole
    source_s3_uri: str
    source_arn: str
    #: The user's own buckets, which jobs may read.
    data_buckets: Sequence[str]
    jobs: LabJobs
    seconds_between_starts: float
    #: The tag of each image of the lab by the image's name; empty in the local cloud, which builds
    #: no images.
    image_tags: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the functions that start jobs."""
        return {
            "SECONDS_BETWEEN_STARTS": f"{self.seconds_between_starts:g}",
            "TRAINING_ROLE_ARN": self.training_role.role_arn,
            "SOURCE_S3_URI": self.source_s3_uri,
            **({} if self.jobs == LabJobs() else {LAB_JOBS_VARIABLE: write_lab_jobs(self.jobs)}),
        }


class Functions(LabFunctions):
    """All functions of a lab but GuardLab and BuildImage."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        setup: FunctionSetup,
        *,
        notifications: Notifications,
        launch: Launch,
    ) -> None:
        super().__init__(scope, construct_id, setup)
        self._grants = LabGrants(self, setup)
        self.state_machine_arn = self._grants.state_machine_arn
        self.plan_suite = self._plan_suite(launch)
        self.check_quotas = self._check_quotas()
        self.plan_round = self._function(
            "PlanRound",
            [
                *self._grants.objects(writes=True),
                *self._grants.tokens(reads=True, writes=False),
            ],
            timeout_seconds=LONG_SECONDS,
        )
        self.submit_run = self._submit_run(launch)
        self.finish_run = self._function(
            "FinishRun",
            self._grants.finishing(),
            timeout_seconds=LONGEST_SECONDS,
            memory_mib=RECORDING_MIB,
            is_for_events=True,
        )
        self.record_run = self._function(
            "RecordRun",
            self._grants.recording(),
            timeout_seconds=LONGEST_SECONDS,
            memory_mib=RECORDING_MIB,
        )
        self.reconcile_runs = self._reconcile_runs()
        self.stop_runs = self._stop_runs()
        self.judge_suite = self._judge_suite(notifications)

    def _plan_suite(self, launch: Launch) -> LabFunction:
        grants = [
            *self._grants.objects(writes=True),
            self._grants.rows("PutItem", "GetItem", "Query", "UpdateItem"),
            Grant(actions=["s3:GetObject"], resources=[launch.source_arn]),
            self._grants.code_copies(),
            *self._grants.tokens(reads=True, writes=False),
            self._grants.listing(*launch.data_buckets),
            without_resources("pricing:GetProducts"),
        ]
        environment = dict(launch.environment)
        if launch.image_tags:
            stack = cdk.Stack.of(self)
            lab = self._setup.lab
            names = [image_parameter(lab, image) for image in launch.image_tags]
            addresses = [arn(stack, "ssm", f"parameter{name}") for name in names]
            grants.append(Grant(actions=["ssm:GetParameters"], resources=addresses))
            environment["IMAGE_TAGS"] = json.dumps(launch.image_tags)
        return self._function(
            "PlanSuite", grants, timeout_seconds=LONG_SECONDS, environment=environment
        )

    def _check_quotas(self) -> LabFunction:
        quotas = (
            "GetServiceQuota",
            "GetAWSDefaultServiceQuota",
            "ListServiceQuotas",
            "ListAWSDefaultServiceQuotas",
        )
        grants = [
            *self._grants.objects(writes=True),
            without_resources(*(f"servicequotas:{name}" for name in quotas)),
            self._grants.all_jobs_listed(),
            self._grants.all_jobs_described(),
        ]
        return self._function("CheckQuotas", grants, timeout_seconds=LONG_SECONDS)

    def _submit_run(self, launch: Launch) -> LabFunction:
        grants = [
            *self._grants.objects(writes=False),
            self._grants.job_documents(),
            self._grants.step_logs(),
            self._grants.rows("GetItem", "PutItem", "UpdateItem", "DeleteItem"),
            self._grants.jobs("CreateTrainingJob", "AddTags"),
            self._grants.task_answers(),
            pass_role(launch.training_role),
        ]
        return self._function("SubmitRun", grants, environment=launch.environment)

    def _reconcile_runs(self) -> LabFunction:
        grants = [
            *self._grants.finishing(),
            self._grants.all_jobs_listed(),
            self._grants.open_attempts(),
            self._grants.executions_described(),
            *ending_endpoints(self._grants),
        ]
        environment = {"STATE_MACHINE_ARN": self.state_machine_arn}
        return self._function(
            "ReconcileRuns",
            grants,
            timeout_seconds=SWEEP_SECONDS,
            environment=environment,
            memory_mib=RECORDING_MIB,
            is_for_events=True,
        )

    def _stop_runs(self) -> LabFunction:
        grants = [
            self._grants.open_attempts(),
            self._grants.rows("UpdateItem"),
            self._grants.jobs("StopTrainingJob"),
            self._grants.executions_described(),
        ]
        environment = {"STATE_MACHINE_ARN": self.state_machine_arn}
        return self._function(
            "StopRuns",
            grants,
            timeout_seconds=LONGEST_SECONDS,
            environment=environment,
            is_for_events=True,
        )

    def _judge_suite(self, notifications: Notifications) -> LabFunction:
        topic_arn = notifications.topic.topic_arn
        bus_arn = arn(cdk.Stack.of(self), "events", "event-bus/default")
        grants = [
            *self._grants.objects(writes=True),
            self._grants.rows("UpdateItem"),
            Grant(actions=["sns:Publish"], resources=[topic_arn]),
            Grant(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[notifications.key.key_arn],
            ),
            Grant(actions=["events:PutEvents"], resources=[bus_arn]),
        ]
        environment = {"TOPIC_ARN": topic_arn}
        return self._function(
            "JudgeSuite",
            grants,
            timeout_seconds=LONG_SECONDS,
            environment=environment,
            memory_mib=1024,
        )
