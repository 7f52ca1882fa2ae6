"""Alarms on failures without another sign."""

from functools import partial

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import Functions
from traindyno.core.lab_names import FAILED_SUITES_METRIC, METRIC_NAMESPACE

ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
PERIOD = cdk.Duration.minutes(5)
SWEEPS_MISSED = 3
# SQS may report the first message of a queue without traffic 15 minutes late.
QUEUE_PERIODS = 6


class Monitoring(Construct):
    """The alarms of a lab, which go to its topic.

    CloudWatch counts the time before the sweep's first call as missed too. The sweep's alarm is
    therefore created after ``images``, whose builds take longer than the schedule's interval, so
    that a new lab does not begin with an alarm.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        functions: Functions,
        topic: sns.ITopic,
        dead_letters: sqs.IQueue | None,
        images: Construct | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._topic = topic
        lab_metric = partial(
            cloudwatch.Metric,
            namespace=METRIC_NAMESPACE,
            dimensions_map={"Lab": lab},
            period=PERIOD,
        )
        # StopRuns counts failed suites: Step Functions' own metric also counts suites that were
        # refused.
        self._alarm(
            "SuiteFailed",
            lab_metric(metric_name=FAILED_SUITES_METRIC, statistic="Sum"),
            periods=1,
            description="A suite's execution failed or timed out: its cause says why. StopRuns "
            "stops its jobs.",
        )
        self._failing_functions(functions)
        sweep = functions.reconcile_runs
        missing = self._alarm(
            "SweepMissing",
            sweep.function.metric_invocations(period=PERIOD, statistic="Sum"),
            periods=SWEEPS_MISSED,
            threshold=1,
            comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            missing=cloudwatch.TreatMissingData.BREACHING,
            description=f"{sweep.name} has not run for 15 minutes. It detects lost events and "
            "costs above the cap.",
        )
        if images is not None:
            missing.node.add_dependency(images)
        if dead_letters:
            # On arrivals: an alarm on the number of messages would last 14 days, the time that they
            # are kept.
            self._alarm(
                "EventsUnhandled",
                dead_letters.metric_number_of_messages_sent(period=PERIOD, statistic="Sum"),
                periods=QUEUE_PERIODS,
                enough=1,
                description="An event was not delivered, or its function failed at every try: "
                "see the dead-letter queue.",
            )

    def _failing_functions(self, functions: Functions) -> None:
        """Adds the alarms of functions that events invoke.

        Another function's error fails its task: it ends the execution and raises SuiteFailed, or
        the verdict names the runs that have no result.
        """
        for function in (functions.reconcile_runs, functions.stop_runs, functions.finish_run):
            self._alarm(
                f"{function.name}Fails",
                function.function.metric_errors(period=PERIOD, statistic="Sum"),
                periods=1,
                description=f"{function.name} raised an error: see its log group. Jobs and "
                "endpoints may continue without control.",
            )

    def _alarm(
        self,
        construct_id: str,
        metric: cloudwatch.IMetric,
        *,
        periods: int,
        description: str,
        enough: int | None = None,
        threshold: int = 0,
        comparison: cloudwatch.ComparisonOperator = ABOVE,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> cloudwatch.Alarm:
        """Adds an alarm that is sent to the topic.

        Args:
            construct_id: The alarm's name.
            metric: What is watched.
            periods: The number of periods that are looked at.
            description: What a person reads in the message.
            enough: How many of these periods must cross the threshold; all of them by default.
            threshold: The value that the metric must cross.
            comparison: On which side of the threshold the alarm is raised.
            missing: What a period without data counts as.
        """
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            threshold=threshold,
            comparison_operator=comparison,
            evaluation_periods=periods,
            datapoints_to_alarm=enough,
            treat_missing_data=missing,
            alarm_description=description,
        )
        alarm.add_alarm_action(actions.SnsAction(self._topic))
        return alarm
