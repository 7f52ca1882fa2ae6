"""A custom resource that CloudFormation calls before it deletes any other resource of the lab."""

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from infra.lab_function import LabFunction
from infra.lab_grants import lab_grants
from infra.serving.serving_grants import ServingGrants
from infra.storage import Storage

ANSWER_WITHIN = cdk.Duration.minutes(2)


class Guard(Construct):
    """CloudFormation deletes dependent resources first, so a refusal leaves the lab unchanged."""

    def __init__(self, scope: Construct, construct_id: str, *, lab: str, code: lambda_.Code, storage: Storage) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        grants = lab_grants(stack, lab, storage)
        serving = ServingGrants(lab=grants)
        guard = LabFunction(
            self,
            "GuardLab",
            code=code,
            environment={
                "LAB": lab,
                "BUCKET": storage.results.bucket_name,
                "TABLE": storage.table.table_name,
                "STATE_MACHINE_ARN": grants.state_machine_arn,
                "DEPLOYMENTS_ARN": serving.machine_arn,
            },
            grants=[
                grants.executions_listed(),
                grants.open_attempts(),
                serving.executions_listed(),
                grants.rows("Query"),
                *serving.removing(),
            ],
            timeout=cdk.Duration.minutes(1),
            memory_mib=512,
        )
        self.resource = cdk.CustomResource(
            self,
            "Resource",
            resource_type="Custom::TraindynoGuard",
            service_token=guard.function.function_arn,
            service_timeout=ANSWER_WITHIN,
        )

    def watch(self, *guarded: IConstruct) -> None:
        self.resource.node.add_dependency(*guarded)
