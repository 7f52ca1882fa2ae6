"""A monthly AWS budget: it sends alerts to the lab's SNS topic when the forecast or the cost exceeds it."""

from decimal import Decimal
from enum import StrEnum

import aws_cdk as cdk
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from traindyno.core.lab_names import LAB_TAG


class Notifications(Construct):
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
            "cloudwatch.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
        )
        self.key.grant_encrypt_decrypt(alarms)
        self.topic = sns.Topic(self, "Topic", master_key=self.key, enforce_ssl=True)
        self.topic.grant_publish(alarms)
        if email:
            sns.Subscription(self, "Email", topic=self.topic, protocol=sns.SubscriptionProtocol.EMAIL, endpoint=email)


FORECAST_PERCENT, ACTUAL_PERCENT = 80, 100


class BudgetScope(StrEnum):
    """``sagemaker``: all of the account's SageMaker. ``lab``: resources with the lab's tag, after its activation."""

    SAGEMAKER = "sagemaker"
    LAB = "lab"


class Budget(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        monthly_usd: Decimal,
        of: BudgetScope,
        notifications: Notifications,
    ) -> None:
        super().__init__(scope, construct_id)
        _allow_publishing(notifications)
        budget = budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=float(monthly_usd), unit="USD"),
                cost_filters=_filters(of, lab),
            ),
            notifications_with_subscribers=[
                _notification("FORECASTED", FORECAST_PERCENT, notifications),
                _notification("ACTUAL", ACTUAL_PERCENT, notifications),
            ],
        )
        # AWS Budgets sends to the topic when the budget is created.
        budget.node.add_dependency(notifications)


def _filters(scope: BudgetScope, lab: str) -> dict[str, list[str]]:
    match scope:
        case BudgetScope.SAGEMAKER:
            return {"Service": ["Amazon SageMaker"]}
        case BudgetScope.LAB:
            return {"TagKeyValue": [f"user:{LAB_TAG}${lab}"]}


def _notification(
    kind: str, percent: int, notifications: Notifications
) -> budgets.CfnBudget.NotificationWithSubscribersProperty:
    return budgets.CfnBudget.NotificationWithSubscribersProperty(
        notification=budgets.CfnBudget.NotificationProperty(
            comparison_operator="GREATER_THAN", notification_type=kind, threshold=percent, threshold_type="PERCENTAGE"
        ),
        subscribers=[
            budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=notifications.topic.topic_arn)
        ],
    )


def _allow_publishing(notifications: Notifications) -> None:
    speaker = iam.ServicePrincipal(
        "budgets.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
    )
    notifications.key.grant_encrypt_decrypt(speaker)
    notifications.topic.grant_publish(speaker)
