"""The permissions of the deployments' functions on models, endpoints and transform jobs, by their operations."""

from dataclasses import dataclass

from infra.lab_grants import LabGrants
from infra.permissions import Grant
from infra.shared import arn
from traindyno.core.lab_names import deployments_machine_name, jobs_prefix
from traindyno.core.s3_keys import MODELS_PREFIX, TRANSFORMS_PREFIX

PER_DEPLOYMENT = "Deployments are named when models are deployed; the lab's name in front keeps other labs' out."
LOG_GROUPS = ("/aws/sagemaker/Endpoints/", "/aws/sagemaker/TransformJobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingGrants:
    lab: LabGrants

    @property
    def machine_arn(self) -> str:
        """The ARN by the fixed name: otherwise functions and state machine would depend on each other."""
        return arn(self.lab.stack, "states", f"stateMachine:{deployments_machine_name(self.lab.lab)}")

    def executions_listed(self) -> Grant:
        return Grant(actions=["states:ListExecutions"], resources=[self.machine_arn])

    def task_failures(self) -> Grant:
        return Grant(actions=["states:SendTaskFailure"], resources=[self.machine_arn])

    def task_answers(self) -> Grant:
        return Grant(actions=["states:SendTaskSuccess", "states:SendTaskFailure"], resources=[self.machine_arn])

    def model_copy(self) -> list[Grant]:
        """From where a training job has left it."""
        grants = [
            self.lab.step_logs(),
            Grant(actions=["s3:ListBucket"], resources=[self.lab.bucket_arn]),
            Grant(
                actions=["s3:PutObject", "s3:AbortMultipartUpload"],
                resources=[f"{self.lab.bucket_arn}/{MODELS_PREFIX}*"],
                wildcard_reason=PER_DEPLOYMENT,
            ),
        ]
        key = self.lab.output_key_arn
        return [*grants, *([Grant(actions=["kms:Decrypt"], resources=[key])] if key else [])]

    def samples(self) -> list[Grant]:
        """Read access to the samples, and to the answers of a transform job."""
        key = self.lab.output_key_arn
        return [
            self.lab.step_logs(),
            Grant(
                actions=["s3:GetObject"],
                resources=[f"{self.lab.bucket_arn}/{TRANSFORMS_PREFIX}*"],
                wildcard_reason=PER_DEPLOYMENT,
            ),
            Grant(actions=["s3:ListBucket"], resources=[self.lab.bucket_arn]),
            *([Grant(actions=["kms:Decrypt"], resources=[key])] if key else []),
        ]

    def creating(self) -> list[Grant]:
        return [
            self._on("model", "CreateModel", "AddTags"),
            self._on("endpoint-config", "CreateEndpointConfig", "CreateEndpoint", "AddTags"),
            self._on("endpoint", "CreateEndpoint", "AddTags"),
            self._on("transform-job", "CreateTransformJob", "AddTags"),
        ]

    def volume_key(self, key_arn: str | None) -> list[Grant]:
        """CreateEndpoint creates a grant on the volume's key as its caller, which the role of the model can't do."""
        if key_arn is None:
            return []
        for_service = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        return [
            Grant(actions=["kms:CreateGrant"], resources=[key_arn], conditions=for_service),
            Grant(actions=["kms:DescribeKey"], resources=[key_arn]),
        ]

    def finishing(self) -> list[Grant]:
        groups = [arn(self.lab.stack, "logs", f"log-group:{name}*") for name in LOG_GROUPS]
        return [
            self.lab.rows("GetItem", "UpdateItem"),
            self._on("endpoint", "DescribeEndpoint"),
            self._on("transform-job", "DescribeTransformJob"),
            self.task_answers(),
            Grant(
                actions=["logs:DescribeLogStreams", "logs:GetLogEvents"],
                resources=groups,
                wildcard_reason=PER_DEPLOYMENT,
            ),
        ]

    def invoking(self) -> Grant:
        return self._on("endpoint", "InvokeEndpoint")

    def removing(self) -> list[Grant]:
        return [
            self.lab.rows("GetItem", "UpdateItem"),
            self._on("endpoint", "DeleteEndpoint"),
            self._on("endpoint-config", "DeleteEndpointConfig"),
            self._on("transform-job", "StopTransformJob"),
            self._on("model", "DeleteModel"),
            Grant(
                actions=["s3:DeleteObject"],
                resources=[f"{self.lab.bucket_arn}/{MODELS_PREFIX}*"],
                wildcard_reason=PER_DEPLOYMENT,
            ),
        ]

    def _on(self, resource: str, *operations: str) -> Grant:
        ours = arn(self.lab.stack, "sagemaker", f"{resource}/{jobs_prefix(self.lab.lab)}*")
        actions = [f"sagemaker:{operation}" for operation in operations]
        return Grant(actions=actions, resources=[ours], wildcard_reason=PER_DEPLOYMENT)
