"""The events and schedules that invoke the functions of deployments, and the alarms about them."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.event_rules import add_rule
from infra.monitoring import PERIOD, add_alarm, add_sweep_alarm, lab_metric
from infra.serving.serving_functions import ServingFunctions
from traindyno.core.lab_names import OVERDUE_ENDPOINTS_METRIC
from traindyno.sagemaker import job_events
from traindyno.sagemaker.serving import serving_description


class ServingEvents(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        functions: ServingFunctions,
        sweep_interval: cdk.Duration,
        topic: sns.ITopic,
        dead_letters: sqs.IQueue | None,
        images: Construct | None,
    ) -> None:
        """``images``: see add_sweep_alarm."""
        super().__init__(scope, construct_id)
        self._topic = topic
        changes = {
            "EndpointChanged": (serving_description.ENDPOINT_CHANGE, serving_description.changed_endpoints_of(lab)),
            "TransformChanged": (serving_description.TRANSFORM_CHANGE, serving_description.changed_transforms_of(lab)),
        }
        for name, (detail_type, detail) in changes.items():
            pattern = events.EventPattern(source=[job_events.EVENT_SOURCE], detail_type=[detail_type], detail=detail)
            add_rule(self, name, functions.finish_deployment, pattern, dead_letters)
        sweep = functions.reconcile_endpoints
        add_rule(self, "Sweep", sweep, events.Schedule.rate(sweep_interval), dead_letters)
        # A sweep that fails is not repeated: the next one is due soon.
        sweep.function.configure_async_invoke(retry_attempts=0, max_event_age=sweep_interval)
        self._alarms(functions, lab, images)

    def _alarms(self, functions: ServingFunctions, lab: str, images: Construct | None) -> None:
        for item in (functions.reconcile_endpoints, functions.finish_deployment):
            self._alarm(
                f"{item.name}Fails",
                item.function.metric_errors(period=PERIOD, statistic="Sum"),
                description=f"{item.name} raised an error: see its log group. Endpoints may continue to be billed.",
            )
        self._alarm(
            "EndpointsOverdue",
            lab_metric(lab, OVERDUE_ENDPOINTS_METRIC),
            description="An endpoint or transform job was not ended within 10 minutes of its limit and is still"
            " billed: see the log of ReconcileEndpoints, or end it with traindyno undeploy.",
        )
        add_sweep_alarm(
            self,
            "EndpointSweepMissing",
            functions.reconcile_endpoints,
            topic=self._topic,
            images=images,
            misses="Endpoints and transform jobs are not ended at their limits.",
        )

    def _alarm(self, construct_id: str, metric: cloudwatch.IMetric, *, description: str) -> None:
        add_alarm(self, construct_id, metric, topic=self._topic, periods=1, description=description)
