"""The permissions of functions on models, endpoint configurations, endpoints and copies of models."""

from infra.lab_grants import LabGrants, without_resources
from infra.permissions import Grant
from traindyno.core.s3_keys import MODELS_PREFIX
from traindyno.sagemaker.job_settings import LabJobs

PER_DEPLOYMENT = "Deployments are named when models are deployed; the lab's name in front keeps other labs' out."


def ending_endpoints(grants: LabGrants) -> list[Grant]:
    """Permissions of the functions that end endpoints: ReconcileRuns and GuardLab."""
    return [
        without_resources("sagemaker:ListEndpoints"),
        on_served(grants, "endpoint", "DescribeEndpoint", "ListTags", "DeleteEndpoint"),
        on_served(grants, "endpoint-config", "DeleteEndpointConfig"),
        on_served(grants, "model", "DeleteModel"),
        on_copies(grants, "s3:GetObject", "s3:DeleteObject"),
    ]


def use_of_keys(jobs: LabJobs) -> list[Grant]:
    """CreateEndpoint creates a grant on the volume's key as its caller, which the role of the model can't do."""
    found = []
    if jobs.volume_key_arn is not None:
        for_service = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        found.append(Grant(actions=["kms:CreateGrant"], resources=[jobs.volume_key_arn], conditions=for_service))
        found.append(Grant(actions=["kms:DescribeKey"], resources=[jobs.volume_key_arn]))
    if jobs.output_key_arn is not None:
        found.append(Grant(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[jobs.output_key_arn]))
    return found


def on_served(grants: LabGrants, kind: str, *operations: str) -> Grant:
    return grants.on(kind, *operations, reason=PER_DEPLOYMENT)


def on_copies(grants: LabGrants, *actions: str) -> Grant:
    copies = f"{grants.bucket_arn}/{MODELS_PREFIX}*"
    return Grant(actions=actions, resources=[copies], wildcard_reason=PER_DEPLOYMENT)
