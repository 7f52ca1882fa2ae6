"""Exceptions from the AwsSolutions rules: each at one construct, for one finding, with its reason."""

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge(scope: IConstruct, finding: str, reason: str) -> None:
    cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))
