"""The guard of a lab: it refuses updates and deletions that would do damage."""

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

from infra.lab_function import FunctionSetup, LabFunction, LabFunctions
from infra.lab_grants import LabGrants
from infra.permissions import Grant
from infra.serving import ending_endpoints
from traindyno.core.lab_names import SETTINGS_RESOURCE

GUARD_SECONDS = 60
ANSWER_WITHIN = cdk.Duration.minutes(2)


class Guard(LabFunctions):
    """GuardLab refuses to delete a lab in use, and to update it without a setting that it has.

    CloudFormation deletes dependent resources first, and updates them last: ``resource`` depends on
    the whole lab, and what uses the settings depends on ``settings``. So a refusal leaves the lab
    unchanged.
    """

    def __init__(
        self, scope: Construct, construct_id: str, setup: FunctionSetup, *, named: Mapping[str, str]
    ) -> None:
        super().__init__(scope, construct_id, setup)
        grants = LabGrants(self, setup)
        function = self._function(
            "GuardLab",
            [
                grants.executions_listed(),
                grants.open_attempts(),
                grants.listing(),
                *ending_endpoints(grants),
                Grant(actions=["cloudformation:DescribeStacks"], resources=[cdk.Aws.STACK_ID]),
            ],
            timeout_seconds=GUARD_SECONDS,
            environment={"STATE_MACHINE_ARN": grants.state_machine_arn},
        )
        self.resource = self._asking(function, "Resource", "Custom::TraindynoGuard")
        self.settings = self._asking(
            function, "Settings", SETTINGS_RESOURCE, properties={"Settings": named}
        )

    def _asking(
        self,
        function: LabFunction,
        construct_id: str,
        resource_type: str,
        *,
        properties: Mapping[str, Mapping[str, str]] | None = None,
    ) -> cdk.CustomResource:
        """A custom resource for whose changes CloudFormation asks the function."""
        return cdk.CustomResource(
            self,
            construct_id,
            resource_type=resource_type,
            service_token=function.function.function_arn,
            service_timeout=ANSWER_WITHIN,
            properties=properties,
        )
