"""The AwsSolutions rules, and the exceptions from them: each at one construct, for one finding, with its reason."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import aws_cdk as cdk
from constructs import IConstruct

# Each acknowledgement costs some messages to the CDK's process. Nothing needs them where no rules are checked.
_are_rules_checked = ContextVar("are_rules_checked", default=True)


def check_rules(app: cdk.App) -> None:
    """Checks every template, also against CloudFormation's own rules; a finding without a reason fails synthesis."""
    # Imported here: loading both engines takes longer than the rest of the synthesis.
    from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415

    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), cdk.CloudFormationValidatePlugin())


@contextmanager
def rules_are_checked(are_checked: bool) -> Iterator[None]:
    """Whether the rules are checked over the constructs that are made inside."""
    token = _are_rules_checked.set(are_checked)
    try:
        yield
    finally:
        _are_rules_checked.reset(token)


def acknowledges() -> bool:
    return _are_rules_checked.get()


def acknowledge(scope: IConstruct, finding: str, reason: str) -> None:
    acknowledge_all(scope, {finding: reason})


def acknowledge_all(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    """``reasons``: finding → reason."""
    if reasons and acknowledges():
        excused = [cdk.Acknowledgment(id=finding, reason=reason) for finding, reason in reasons.items()]
        cdk.Validations.of(scope).acknowledge(*excused)
