"""The state machine that deploys a trained model, from the copy of its archive to its checked answers."""

import aws_cdk as cdk
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.lab_machine import make_machine
from infra.permissions import Grant, make_role
from infra.retries import retry_deployments
from infra.serving.serving_events import ServingEvents
from infra.serving.serving_functions import ServingFunctions
from infra.shared import discarded
from infra.state_machine_role import LOG_DELIVERY, TRACING
from infra.steps import Payload, answered_step, waiting_step
from traindyno.core.lab_names import deployments_machine_name
from traindyno.core.serving.deployment import Hosting
from traindyno.core.serving.lifetime import LONGEST_TRANSFORM_HOURS

GIVE_UP_AFTER = cdk.Duration.days(6)
# SageMaker ends an endpoint that does not start within the hour. The sweep stops a transform job at its limit.
READY_WITHIN = cdk.Duration.hours(LONGEST_TRANSFORM_HOURS)


class Serving(Construct):
    """``parts``: all constructs of deployments, this one included."""

    def __init__(
        self, scope: Construct, construct_id: str, *, lab: str, functions: ServingFunctions, events: ServingEvents
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self.parts: list[Construct] = [functions, events, self]
        self.state_machine = make_machine(
            self,
            name=deployments_machine_name(lab),
            definition=self._definition(),
            role=make_role(
                self,
                "MachineRole",
                service="states.amazonaws.com",
                trust_conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
                grants=self._grants(),
            ),
            timeout=GIVE_UP_AFTER,
        )

    def _grants(self) -> list[Grant]:
        functions = self._functions
        steps = (functions.deploy_model, functions.check_endpoint, functions.remove_endpoint)
        return [
            Grant(actions=["lambda:InvokeFunction"], resources=[step.function.function_arn for step in steps]),
            Grant(
                actions=[*LOG_DELIVERY, *TRACING],
                resources=["*"],
                wildcard_reason="Actions of CloudWatch Logs delivery and X-Ray do not support resource-level"
                " permissions.",
            ),
        ]

    def _definition(self) -> sfn.IChainable:
        failed = self._failure()
        deploy, transform = self._deploy("DeployModel"), self._deploy("RunTransform")
        check = answered_step(self, "CheckEndpoint", self._functions.check_endpoint, result_path="$.checked")
        remove_model = self._remove("RemoveModel", {"name": sfn.JsonPath.string_at("$.name")})
        for step in (deploy, check, transform):
            step.add_catch(failed, result_path="$.failure")
        refused = sfn.Pass(
            self, "AnswersRefused", state_name="AnswersRefused", input_path="$.checked.refused", result_path="$.failure"
        )
        answered = sfn.Choice(self, "Answered", state_name="Answered")
        answered.when(sfn.Condition.is_present("$.checked.refused"), refused.next(failed))
        answered.when(sfn.Condition.string_equals("$.hosting", Hosting.TRANSFORM.value), transform.next(remove_model))
        answered.otherwise(sfn.Succeed(self, "InService", state_name="InService"))
        return deploy.next(check).next(answered)

    def _deploy(self, name: str) -> tasks.LambdaInvoke:
        """DeployModel creates what is due: the model with its endpoint or check, then the transform job."""
        deploy = waiting_step(
            self,
            name,
            self._functions.deploy_model,
            payload={"deployment": sfn.JsonPath.object_at("$$.Execution.Input")},
            result_path=discarded(),
            timeout=sfn.Timeout.duration(READY_WITHIN),
        )
        retry_deployments(deploy)
        return deploy

    def _failure(self) -> sfn.Chain:
        """What was created is deleted before the execution fails, so that its billing stops."""
        payload = {"name": sfn.JsonPath.string_at("$.name"), "failure": sfn.JsonPath.object_at("$.failure")}
        remove = self._remove("RemoveEndpoint", payload)
        failed = sfn.Fail(
            self,
            "NotDeployed",
            state_name="NotDeployed",
            error_path=sfn.JsonPath.string_at("$.failure.Error"),
            cause_path=sfn.JsonPath.string_at("$.failure.Cause"),
        )
        return remove.next(failed)

    def _remove(self, name: str, payload: Payload) -> tasks.LambdaInvoke:
        return answered_step(self, name, self._functions.remove_endpoint, payload=payload, result_path=discarded())
