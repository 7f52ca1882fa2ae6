"""The permissions of the deployments' functions on models, endpoints and transform jobs, by their operations."""

from dataclasses import dataclass

from infra.lab_grants import LabGrants
from infra.permissions import Grant
from traindyno.core.lab_names import deployments_machine_name
from traindyno.core.s3_keys import MODELS_PREFIX, TRANSFORMS_PREFIX

PER_DEPLOYMENT = "Deployments are named when models are deployed; the lab's name in front keeps other labs' out."
LOG_GROUPS = ("/aws/sagemaker/Endpoints/", "/aws/sagemaker/TransformJobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingGrants(LabGrants):
    @property
    def machine_name(self) -> str:
        return deployments_machine_name(self.lab)

    def task_failures(self) -> Grant:
        return Grant(actions=["states:SendTaskFailure"], resources=[self.state_machine_arn])

    def task_answers(self) -> Grant:
        return Grant(actions=["states:SendTaskSuccess", "states:SendTaskFailure"], resources=[self.state_machine_arn])

    def model_copy(self) -> list[Grant]:
        """Read the model where the training job saved it, and write the copy."""
        return [
            self.step_logs(),
            self.listing(),
            Grant(
                actions=["s3:PutObject", "s3:AbortMultipartUpload"],
                resources=[f"{self.bucket_arn}/{MODELS_PREFIX}*"],
                wildcard_reason=PER_DEPLOYMENT,
            ),
            *self.output_key(),
        ]

    def samples(self) -> list[Grant]:
        """Read access to the samples, and to the answers of a transform job."""
        return [
            self.step_logs(),
            Grant(
                actions=["s3:GetObject"],
                resources=[f"{self.bucket_arn}/{TRANSFORMS_PREFIX}*"],
                wildcard_reason=PER_DEPLOYMENT,
            ),
            self.listing(),
            *self.output_key(),
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
        return [
            self.rows("GetItem", "UpdateItem"),
            self._on("endpoint", "DescribeEndpoint"),
            self._on("transform-job", "DescribeTransformJob"),
            self.task_answers(),
            self.job_logs(*(f"{name}*" for name in LOG_GROUPS), reason=PER_DEPLOYMENT),
        ]

    def invoking(self) -> Grant:
        return self._on("endpoint", "InvokeEndpoint")

    def removing(self) -> list[Grant]:
        return [
            self.rows("GetItem", "UpdateItem"),
            self._on("endpoint", "DeleteEndpoint"),
            self._on("endpoint-config", "DeleteEndpointConfig"),
            self._on("transform-job", "StopTransformJob"),
            self._on("model", "DeleteModel"),
            Grant(
                actions=["s3:DeleteObject"],
                resources=[f"{self.bucket_arn}/{MODELS_PREFIX}*"],
                wildcard_reason=PER_DEPLOYMENT,
            ),
        ]

    def _on(self, kind: str, *operations: str) -> Grant:
        return self.on(kind, *operations, reason=PER_DEPLOYMENT)
