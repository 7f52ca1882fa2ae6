"""The functions that deploy trained models, each with the actions and resources that its handler uses."""

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import shared
from infra.lab_function import LabFunction
from infra.lab_grants import lab_grants, pass_role
from infra.lab_jobs import lab_jobs_environment
from infra.permissions import Grant
from infra.serving.serving_grants import ServingGrants
from infra.storage import Storage
from traindyno.sagemaker.job_settings import LabJobs

SHORT_SECONDS = 120
# Of copying a model of many gigabytes, and of a hundred slow requests
LONG_SECONDS = 900


class ServingFunctions(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        code: lambda_.Code,
        storage: Storage,
        role: iam.IRole,
        jobs: LabJobs,
        dead_letters: sqs.IQueue | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._code = code
        self._dead_letters = dead_letters
        self._shared = {"LAB": lab, "BUCKET": storage.results.bucket_name, "TABLE": storage.table.table_name}
        of_lab = lab_grants(cdk.Stack.of(self), lab, storage, output_key_arn=jobs.output_key_arn)
        grants = ServingGrants(lab=of_lab)
        self.deploy_model = self._function(
            "DeployModel",
            [
                *grants.model_copy(),
                of_lab.rows("GetItem", "PutItem", "UpdateItem"),
                *grants.creating(),
                *grants.volume_key(jobs.volume_key_arn),
                grants.task_failures(),
                pass_role(role),
            ],
            seconds=LONG_SECONDS,
            environment={"SERVING_ROLE_ARN": role.role_arn, **lab_jobs_environment(jobs)},
        )
        self.finish_deployment = self._function("FinishDeployment", grants.finishing(), is_for_events=True)
        self.check_endpoint = self._function(
            "CheckEndpoint",
            [*grants.samples(), of_lab.rows("GetItem", "UpdateItem"), grants.invoking()],
            seconds=LONG_SECONDS,
        )
        self.remove_endpoint = self._function("RemoveEndpoint", grants.removing())
        self.reconcile_endpoints = self._function(
            "ReconcileEndpoints",
            [*grants.finishing(), *grants.removing(), of_lab.rows("Query")],
            seconds=LONG_SECONDS,
            is_for_events=True,
        )

    def _function(
        self,
        state: str,
        grants: Sequence[Grant],
        *,
        seconds: int = SHORT_SECONDS,
        environment: Mapping[str, str] | None = None,
        is_for_events: bool = False,
    ) -> LabFunction:
        return LabFunction(
            self,
            state,
            code=self._code,
            environment={**self._shared, **(environment or {})},
            grants=grants,
            timeout=shared.seconds(seconds),
            memory_mib=512,
            dead_letters=self._dead_letters if is_for_events else None,
        )
