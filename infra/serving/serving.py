"""The function that deploys a trained model, and the role of served models."""

from dataclasses import replace

import aws_cdk as cdk
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.lab_function import FunctionSetup, LabFunctions
from infra.lab_grants import LabGrants, pass_role
from infra.lab_jobs import lab_jobs_environment, training_grants
from infra.monitoring import add_alarm, lab_metric
from infra.sagemaker_role import image_grants, log_grant, metric_grant, sagemaker_role
from infra.serving.serving_grants import on_copies, on_served, use_of_keys
from infra.shared import arn
from traindyno.core.lab_names import ISOLATED_OUTPUT, OVERDUE_ENDPOINTS_METRIC, LabOutput
from traindyno.core.serving.deployment import IMAGE_REPOSITORY
from traindyno.sagemaker.job_settings import LabJobs

# To copy an archive of many GB
LONG_SECONDS = 900


class Serving(LabFunctions):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        setup: FunctionSetup,
        *,
        jobs: LabJobs,
        topic: sns.ITopic,
    ) -> None:
        super().__init__(scope, construct_id, setup)
        grants = LabGrants.of(self, setup, output_key_arn=jobs.output_key_arn)
        # Secrets are for training jobs only.
        network_and_keys = training_grants(replace(jobs, hub_token_secrets=()), ())
        stack = cdk.Stack.of(self)
        role = sagemaker_role(
            self,
            "ServedModelRole",
            description="What a served model of this lab may do: read itself, log, pull its image",
            grants=[
                on_copies(grants, "s3:GetObject"),
                *image_grants(
                    [arn(stack, "ecr", f"repository/{IMAGE_REPOSITORY}", account="*")],
                    reason="AWS's inference containers are in an account of AWS for each region.",
                ),
                log_grant(stack, ["/aws/sagemaker/Endpoints/"], reason="SageMaker names a log group per endpoint."),
                metric_grant({"StringLike": {"cloudwatch:namespace": "/aws/sagemaker/*"}}),
                *network_and_keys,
            ],
        )
        deploy = self._function(
            "DeployModel",
            [
                grants.step_logs(),
                grants.listing(),
                on_copies(grants, "s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"),
                *use_of_keys(jobs),
                on_served(grants, "model", "CreateModel", "AddTags"),
                on_served(grants, "endpoint-config", "CreateEndpointConfig", "CreateEndpoint", "AddTags"),
                on_served(grants, "endpoint", "CreateEndpoint", "AddTags"),
                pass_role(role),
            ],
            timeout_seconds=LONG_SECONDS,
            environment={"SERVING_ROLE_ARN": role.role_arn, **lab_jobs_environment(jobs)},
        )
        cdk.CfnOutput(stack, LabOutput.DEPLOY_FUNCTION.value, value=deploy.function.function_name)
        if jobs.isolates_network:
            cdk.CfnOutput(stack, ISOLATED_OUTPUT, value="true")
        add_alarm(
            self,
            "EndpointsOverdue",
            lab_metric(setup.lab, OVERDUE_ENDPOINTS_METRIC),
            topic=topic,
            periods=1,
            description="An endpoint was not deleted within 10 minutes of its limit and is still billed: see the log of"
            " ReconcileRuns, or end it with traindyno undeploy.",
        )
