"""A custom resource that CloudFormation calls before it deletes any other resource of the lab."""

import aws_cdk as cdk
from constructs import Construct, IConstruct

from infra.lab_function import FunctionSetup, LabFunctions
from infra.lab_grants import LabGrants
from infra.serving.serving_grants import ending_endpoints

GUARD_SECONDS = 60
ANSWER_WITHIN = cdk.Duration.minutes(2)


class Guard(LabFunctions):
    """CloudFormation deletes dependent resources first, so a refusal leaves the lab unchanged."""

    def __init__(self, scope: Construct, construct_id: str, setup: FunctionSetup) -> None:
        super().__init__(scope, construct_id, setup)
        grants = LabGrants.of(self, setup)
        guard = self._function(
            "GuardLab",
            [grants.executions_listed(), grants.open_attempts(), *ending_endpoints(grants)],
            timeout_seconds=GUARD_SECONDS,
            environment={"STATE_MACHINE_ARN": grants.state_machine_arn},
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
