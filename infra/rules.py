"""Checks every template against AwsSolutions and CloudFormation's own rules; a finding without a reason fails
synthesis.
"""

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks


def check_rules(app: cdk.App) -> None:
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), cdk.CloudFormationValidatePlugin())
