"""The queue of a lab's events that were not delivered or not handled."""

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.permissions import acknowledge

KEPT = cdk.Duration.days(14)


class DeadLetters(Construct):
    """The queue, which keeps an event for two weeks."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=KEPT,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        acknowledge(self.queue, {"AwsSolutions-SQS3": "This is the dead-letter queue itself."})
