"""The functions that deploy trained models, each with the actions and resources that its handler uses."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.lab_function import FunctionSetup, LabFunctions
from infra.lab_grants import pass_role
from infra.lab_jobs import lab_jobs_environment
from infra.serving.serving_grants import ServingGrants
from traindyno.sagemaker.job_settings import LabJobs

# Time to copy a model of many GB, or to send 100 slow requests
LONG_SECONDS = 900


class ServingFunctions(LabFunctions):
    def __init__(
        self, scope: Construct, construct_id: str, setup: FunctionSetup, *, role: iam.IRole, jobs: LabJobs
    ) -> None:
        super().__init__(scope, construct_id, setup)
        grants = ServingGrants.of(self, setup, output_key_arn=jobs.output_key_arn)
        self.deploy_model = self._function(
            "DeployModel",
            [
                *grants.model_copy(),
                grants.rows("GetItem", "PutItem", "UpdateItem"),
                *grants.creating(),
                *grants.volume_key(jobs.volume_key_arn),
                grants.task_failures(),
                pass_role(role),
            ],
            timeout_seconds=LONG_SECONDS,
            environment={"SERVING_ROLE_ARN": role.role_arn, **lab_jobs_environment(jobs)},
        )
        self.finish_deployment = self._function("FinishDeployment", grants.finishing(), is_for_events=True)
        self.check_endpoint = self._function(
            "CheckEndpoint",
            [*grants.samples(), grants.rows("GetItem", "UpdateItem"), grants.invoking()],
            timeout_seconds=LONG_SECONDS,
        )
        self.remove_endpoint = self._function("RemoveEndpoint", grants.removing())
        self.reconcile_endpoints = self._function(
            "ReconcileEndpoints",
            [*grants.finishing(), *grants.removing(), grants.rows("Query")],
            timeout_seconds=LONG_SECONDS,
            is_for_events=True,
        )
