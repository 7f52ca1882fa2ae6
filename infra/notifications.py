"""The lab's SNS topic, to which its alarms and verdicts are sent."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct


class Notifications(Construct):
    """The topic with its key, and the subscription of ``email``, if it is not empty."""

    def __init__(self, scope: Construct, construct_id: str, *, email: str) -> None:
        super().__init__(scope, construct_id)
        # CloudWatch alarms can't publish to a topic under the key that AWS manages for SNS.
        self.key = kms.Key(
            self,
            "Key",
            description="Encrypts the lab's notifications",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.DESTROY,
            pending_window=cdk.Duration.days(7),
        )
        alarms = iam.ServicePrincipal(
            "cloudwatch.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
        )
        self.key.grant_encrypt_decrypt(alarms)
        self.topic = sns.Topic(self, "Topic", master_key=self.key, enforce_ssl=True)
        self.topic.grant_publish(alarms)
        if email:
            sns.Subscription(
                self,
                "Email",
                topic=self.topic,
                protocol=sns.SubscriptionProtocol.EMAIL,
                endpoint=email,
            )
