"""Permissions of the functions on what the lab has, by the operations that they call."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.identity import JOB_LOG_GROUP
from infra.lab_function import FunctionSetup
from infra.permissions import Conditions, Grant, arn
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX, jobs_prefix, state_machine_name
from traindyno.core.s3_keys import (
    CODE_PREFIX,
    PREPARED_PREFIX,
    RUNS_PREFIX,
    TOKEN_MARKERS_PREFIX,
    job_document_key,
)

PER_EXECUTION = "Objects and executions are named after deployment, when suites run."
PER_KEY = "Prepared data is stored under a key that is a hash of its content."
PER_JOB = (
    "Jobs are named after suite, run and attempt; the lab's name in front keeps other labs' jobs "
    "out."
)


class LabGrants:
    """Permissions on the bucket, the table, the jobs and the executions of one lab."""

    def __init__(self, scope: Construct, setup: FunctionSetup) -> None:
        self.lab = setup.lab
        self.stack = cdk.Stack.of(scope)
        self.bucket_arn = setup.storage.bucket_arn
        self.table_arn = setup.storage.table_arn

    @property
    def state_machine_arn(self) -> str:
        """The ARN by the fixed name: otherwise functions and state machine would depend on each
        other.
        """
        return arn(self.stack, "states", f"stateMachine:{state_machine_name(self.lab)}")

    def objects(self, *, writes: bool) -> list[Grant]:
        actions = ["s3:GetObject", "s3:PutObject"] if writes else ["s3:GetObject"]
        under = Grant(
            actions=actions,
            resources=[f"{self.bucket_arn}/suites/*"],
            wildcard_reason=PER_EXECUTION,
        )
        return [under, Grant(actions=["s3:ListBucket"], resources=[self.bucket_arn])]

    def step_logs(self) -> Grant:
        """Read access to the files that training jobs wrote below their prefixes: step logs, and
        how runs ended.
        """
        return Grant(
            actions=["s3:GetObject"],
            resources=[f"{self.bucket_arn}/{RUNS_PREFIX}*"],
            wildcard_reason=PER_EXECUTION,
        )

    def tokens(self, *, reads: bool, writes: bool) -> list[Grant]:
        """The markers that name complete tokens; only training jobs write the tokens themselves."""
        actions = []
        if reads:
            actions.append("s3:GetObject")
        if writes:
            actions.append("s3:PutObject")
        markers = f"{self.bucket_arn}/{TOKEN_MARKERS_PREFIX}*"
        return [Grant(actions=actions, resources=[markers], wildcard_reason=PER_KEY)]

    def code_copies(self) -> Grant:
        """Each execution's own copies of the training code and of the suite's script, which is
        uploaded there too.
        """
        copies = f"{self.bucket_arn}/{CODE_PREFIX}*"
        return Grant(
            actions=["s3:GetObject", "s3:PutObject"],
            resources=[copies],
            wildcard_reason=PER_EXECUTION,
        )

    def job_documents(self) -> Grant:
        """What shared jobs run, which SubmitRun writes and their containers read."""
        # not the code beside them
        documents = f"{self.bucket_arn}/{job_document_key('*', '*').removesuffix('.json')}"
        return Grant(actions=["s3:PutObject"], resources=[documents], wildcard_reason=PER_EXECUTION)

    def manifests(self) -> Grant:
        prepared = f"{self.bucket_arn}/{PREPARED_PREFIX}*"
        return Grant(actions=["s3:GetObject"], resources=[prepared], wildcard_reason=PER_KEY)

    def listing(self, *data_buckets: str) -> Grant:
        """List the lab's bucket and the context's data buckets: a dataset is identified by its
        content.
        """
        named = [
            self.stack.format_arn(service="s3", region="", account="", resource=name)
            for name in data_buckets
        ]
        return Grant(actions=["s3:ListBucket"], resources=[self.bucket_arn, *named])

    def rows(self, *operations: str) -> Grant:
        return Grant(
            actions=[f"dynamodb:{operation}" for operation in operations],
            resources=[self.table_arn],
        )

    def open_attempts(self) -> Grant:
        return Grant(
            actions=["dynamodb:Query"], resources=[f"{self.table_arn}/index/{OPEN_ATTEMPTS_INDEX}"]
        )

    def jobs(self, *operations: str) -> Grant:
        return self.on("training-job", *operations, reason=PER_JOB)

    def all_jobs_listed(self) -> Grant:
        return without_resources("sagemaker:ListTrainingJobs")

    def all_jobs_described(self) -> Grant:
        every = arn(self.stack, "sagemaker", "training-job/*")
        reason = "Jobs of all owners use up the account's quotas."
        return Grant(
            actions=["sagemaker:DescribeTrainingJob"], resources=[every], wildcard_reason=reason
        )

    def task_answers(self) -> Grant:
        # A task token of a Distributed Map's child belongs to the state machine's ARN with the
        # Map's label behind it.
        return Grant(
            actions=["states:SendTaskSuccess", "states:SendTaskFailure"],
            resources=[self.state_machine_arn, f"{self.state_machine_arn}/*"],
            wildcard_reason="Child executions of the Distributed Map bear the state machine's "
            "ARN and the Map's label.",
        )

    def executions_listed(self) -> Grant:
        return Grant(actions=["states:ListExecutions"], resources=[self.state_machine_arn])

    def executions_described(self) -> Grant:
        executions = self.state_machine_arn.replace(":stateMachine:", ":execution:")
        return Grant(
            actions=["states:DescribeExecution"],
            resources=[f"{executions}:*"],
            wildcard_reason=PER_EXECUTION,
        )

    def job_logs(self) -> Grant:
        streams = arn(self.stack, "logs", f"log-group:{JOB_LOG_GROUP}:*")
        actions = ["logs:DescribeLogStreams", "logs:GetLogEvents"]
        return Grant(actions=actions, resources=[streams], wildcard_reason=PER_JOB)

    def on(
        self, kind: str, *operations: str, reason: str, conditions: Conditions | None = None
    ) -> Grant:
        """SageMaker's operations on the lab's resources of one kind."""
        ours = arn(self.stack, "sagemaker", f"{kind}/{jobs_prefix(self.lab)}*")
        actions = [f"sagemaker:{operation}" for operation in operations]
        return Grant(
            actions=actions, resources=[ours], wildcard_reason=reason, conditions=conditions or {}
        )

    def recording(self) -> list[Grant]:
        return [
            *self.objects(writes=True),
            self.step_logs(),
            self.rows("GetItem", "UpdateItem"),
            self.jobs("StopTrainingJob"),
            self.job_logs(),
        ]

    def finishing(self) -> list[Grant]:
        return [
            *self.recording(),
            *self.tokens(reads=False, writes=True),
            self.manifests(),
            self.jobs("DescribeTrainingJob"),
            self.task_answers(),
        ]


def without_resources(*actions: str) -> Grant:
    return Grant(
        actions=actions,
        resources=["*"],
        wildcard_reason="These actions do not support resource-level permissions.",
    )


def pass_role(role: iam.IRole) -> Grant:
    return Grant(
        actions=["iam:PassRole"],
        resources=[role.role_arn],
        conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
    )
