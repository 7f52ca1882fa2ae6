"""The rules by which events and the schedule invoke the lab's functions."""

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.functions import Functions
from infra.lab_function import LabFunction
from traindyno.sagemaker import job_names

ENDED_EARLY = ["ABORTED", "FAILED", "TIMED_OUT"]


class EventRules(Construct):
    """The rules of job ends, of suites that ended early, and of the sweep.

    Events that EventBridge could not deliver go to the queue ``dead_letters``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        functions: Functions,
        state_machine: sfn.IStateMachine,
        sweep_interval: cdk.Duration,
        dead_letters: sqs.IQueue | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._dead_letters = dead_letters
        self._rule(
            "JobEnded",
            functions.finish_run,
            events.EventPattern(
                source=[job_names.EVENT_SOURCE],
                detail_type=[job_names.DETAIL_TYPE],
                detail=job_names.ended_jobs_of(lab),
            ),
        )
        self._rule(
            "SuiteEndedEarly",
            functions.stop_runs,
            events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "stateMachineArn": [state_machine.state_machine_arn],
                    "status": ENDED_EARLY,
                },
            ),
        )
        self._rule("Sweep", functions.reconcile_runs, events.Schedule.rate(sweep_interval))
        # A sweep that fails is not repeated: the next one starts soon.
        functions.reconcile_runs.function.configure_async_invoke(
            retry_attempts=0, max_event_age=sweep_interval
        )

    def _rule(
        self, construct_id: str, function: LabFunction, when: events.EventPattern | events.Schedule
    ) -> None:
        events.Rule(
            self,
            construct_id,
            event_pattern=when if isinstance(when, events.EventPattern) else None,
            schedule=when if isinstance(when, events.Schedule) else None,
            targets=[
                targets.LambdaFunction(function.function, dead_letter_queue=self._dead_letters)
            ],
        )
