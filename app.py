"""The CDK app: one lab, which the context names. Its settings are in labs/LAB.toml."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import aws_cdk as cdk

from infra.lab_settings import LabSettingsInvalid
from infra.lab_stack import add_lab

# The CDK's own validation, with which a synthesis takes 2.4 times as long, belongs to the rules:
# --context rules=on.
app = cdk.App(builtin_cloud_formation_validation=False)
with TemporaryDirectory() as staging:
    try:
        add_lab(app, staging=Path(staging), region=os.environ.get("CDK_DEFAULT_REGION"))
    except LabSettingsInvalid as error:
        raise SystemExit(str(error)) from None
app.synth()
