"""Alarms on what nobody would notice by itself, and one dashboard of the lab."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.functions import Functions
from traindyno.core.lab_names import METRIC_NAMESPACE, OPEN_RUNS_METRIC, OVERDUE_RUNS_METRIC

PERIOD = cdk.Duration.minutes(5)


class Monitoring(Construct):
    """``has_metric_math``: the local cloud's CloudWatch has no alarms on expressions."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        state_machine: sfn.StateMachine,
        functions: Functions,
        topic: sns.ITopic,
        has_metric_math: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        self._lab = lab
        self._notify = actions.SnsAction(topic)
        overdue = self._lab_metric(OVERDUE_RUNS_METRIC)
        self._failed_suites(state_machine)
        if has_metric_math:
            self._growing_overdue(overdue)
        self._dashboard(state_machine, functions, overdue)

    def _failed_suites(self, state_machine: sfn.StateMachine) -> None:
        self._alarm(
            "SuiteFailed",
            state_machine.metric_failed(period=PERIOD, statistic="Sum"),
            periods=1,
            description="A suite's execution failed: its cause says why, and StopRuns has been told to stop its jobs.",
        )

    def _growing_overdue(self, overdue: cloudwatch.IMetric) -> None:
        growth = cloudwatch.MathExpression(
            expression="DIFF(overdue)",
            using_metrics={"overdue": overdue},
            period=PERIOD,
            label="growth of overdue runs",
        )
        self._alarm(
            "OverdueRunsGrow",
            growth,
            periods=3,
            description="Runs whose jobs have ended without being finished keep increasing: events or FinishRun fail.",
        )

    def _alarm(self, construct_id: str, metric: cloudwatch.IMetric, *, periods: int, description: str) -> None:
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=periods,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=description,
        )
        alarm.add_alarm_action(self._notify)

    def _dashboard(self, state_machine: sfn.StateMachine, functions: Functions, overdue: cloudwatch.IMetric) -> None:
        acting = [functions.submit_run, functions.finish_run, functions.record_run, functions.reconcile_runs]
        suites = [state_machine.metric_started(), state_machine.metric_succeeded(), state_machine.metric_failed()]
        dashboard = cloudwatch.Dashboard(self, "Dashboard", default_interval=cdk.Duration.days(1))
        dashboard.add_widgets(
            _graph("Suites", suites),
            _graph("Runs", [self._lab_metric(OPEN_RUNS_METRIC), overdue]),
            _graph("Errors of functions", [item.function.metric_errors(label=item.node.id) for item in acting]),
        )

    def _lab_metric(self, name: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=METRIC_NAMESPACE,
            metric_name=name,
            dimensions_map={"Lab": self._lab},
            statistic="Maximum",
            period=PERIOD,
        )


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=[*metrics], width=8)
