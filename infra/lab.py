"""One lab as a CDK app: its stack, its tags and, if requested, the security rules."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from infra.acknowledgements import check_rules, rules_are_checked
from infra.lab_settings import Target, read_lab_settings
from infra.lab_stack import LabStack
from infra.lambda_source import pack_lambda_source
from traindyno.bundle import pack, training_files
from traindyno.core.lab_names import LAB_TAG, lab_stack_name


def add_lab(app: cdk.App, *, staging: Path, region: str | None = None) -> None:
    """``region``: where the lab is about to be deployed, if that is known.

    ``staging`` is an empty folder that must exist until this call returns; assets are copied from it.
    """
    settings = read_lab_settings(app.node, region=region)
    with rules_are_checked(settings.checks_rules):
        stack = LabStack(
            app,
            "Lab",
            stack_name=lab_stack_name(settings.lab),
            settings=settings,
            # MiniStack's environment has boto3; otherwise each worker would import its own copy without bytecode.
            lambda_source=_write(
                staging / "lambda.zip", pack_lambda_source(with_boto3=settings.target is not Target.LOCAL)
            ),
            training_source=_write(staging / "sourcedir.tar.gz", pack(training_files())),
        )
    if settings.permissions_boundary:
        boundary = iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", settings.permissions_boundary)
        iam.PermissionsBoundary.of(app).apply(boundary)
    cdk.Tags.of(app).add(LAB_TAG, settings.lab)
    if settings.checks_rules:
        check_rules(app)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
