"""The queue of events that EventBridge could not deliver, or that a function failed to handle at every attempt."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.acknowledgements import acknowledge

KEPT = cdk.Duration.days(14)


class DeadLetters(Construct):
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
        rules = cdk.Stack.of(self).format_arn(service="events", resource="rule", resource_name="*")
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[self.queue.queue_arn],
                conditions={"ArnLike": {"aws:SourceArn": rules}},
            )
        )
        acknowledge(self.queue, "AwsSolutions-SQS3", "This is the dead-letter queue itself.")
