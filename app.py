"""The CDK app: one lab. Its name, target and settings come from the context: cdk.json, or --context lab=my-lab."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import aws_cdk as cdk

from infra.lab_stack import add_lab

# The CDK's own validation belongs to the rules, which are checked where the context asks for them.
app = cdk.App(builtin_cloud_formation_validation=False)
with TemporaryDirectory() as staging:
    add_lab(app, staging=Path(staging), region=os.environ.get("CDK_DEFAULT_REGION"))
app.synth()
